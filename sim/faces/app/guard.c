#include "app/guard.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

enum { ID_MOST = 32 };               /* letters of a question's number */

static int make_secret(char secret[GUARD_SECRET], struct error *err)
{
    unsigned char bytes[(GUARD_SECRET - 1) / 2];

    if (getentropy(bytes, sizeof bytes))
        return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "the system has no random numbers");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

int guard_init(struct guard *guard, int port, struct error *err)
{
    *guard = (struct guard){.port = port};
    return make_secret(guard->token, err) || make_secret(guard->cookie, err) ? -1 : 0;
}

/* Whether the text begins with the secret and is so long; it takes as long wherever they differ. */
static bool same(const char *secret, const char *text, size_t length)
{
    unsigned differ = 0;

    if (length != GUARD_SECRET - 1 || !secret[0])
        return false;
    for (size_t i = 0; i < length; i++)
        differ |= (unsigned)(unsigned char)secret[i] ^ (unsigned)(unsigned char)text[i];
    return !differ;
}

void guard_name(const struct guard *guard, char name[GUARD_NAME])
{
    snprintf(name, GUARD_NAME, "dtsim-%d", guard->port);
}

/* Whether one of the cookies "A=1; B=2" is the guard's. */
static bool knows_secret(const struct guard *guard, const char *cookies)
{
    char name[GUARD_NAME];
    size_t length;

    guard_name(guard, name);
    length = strlen(name);
    for (const char *at = cookies; at && *at;) {
        size_t whole = strcspn(at, ";");

        if (whole > length && !strncmp(at, name, length) && at[length] == '=' &&
            same(guard->cookie, at + length + 1, whole - length - 1))
            return true;
        at += whole + (at[whole] == ';');
        at += strspn(at, " ");
    }
    return false;
}

static struct guarded refuse(int status, const char *why)
{
    return (struct guarded){.verdict = GUARD_REFUSED, .status = status, .why = why};
}

/* Whether the address of the request is this server's own, as it was opened: a name that somebody else's server of names
 * lets mean 127.0.0.1 is none. */
static bool is_own(const struct guard *guard, const char *text, const char *scheme)
{
    char own[48];

    if (guard->port == 80)           /* which browsers do not name */
        snprintf(own, sizeof own, "%s127.0.0.1", scheme);
    else
        snprintf(own, sizeof own, "%s127.0.0.1:%d", scheme, guard->port);
    return text && !strcmp(text, own);
}

/* Whether a page of this server sent it, or a person opened the address. A browser that says neither is an old one: then
 * Origin, which every browser sends with POST, and the cookie's SameSite tell. */
static bool comes_from_own(const struct guard *guard, const struct http_head *head, bool posts)
{
    if (head->origin ? !is_own(guard, head->origin, "http://") : posts)
        return false;
    return !head->site || !strcmp(head->site, "same-origin") || (!posts && !strcmp(head->site, "none"));
}

/* The number behind a path's beginning; NULL: the path is another one. */
static const char *id_behind(const char *path, const char *beginning)
{
    size_t length = strlen(beginning), count;

    if (strncmp(path, beginning, length))
        return NULL;
    count = strspn(path + length, "0123456789abcdefghijklmnopqrstuvwxyz-");
    return count && count <= ID_MOST && !path[length + count] ? path + length : NULL;
}

static struct guarded check_get(struct guard *guard, const struct http_head *head)
{
    if (strcmp(head->path, "/"))
        return refuse(404, "There is no such page.");
    if (head->token && same(guard->token, head->token, strlen(head->token))) {
        guard->token[0] = '\0';
        return (struct guarded){.verdict = comes_from_own(guard, head, false) ? GUARD_ENTER : GUARD_ENTER_BY_PAGE};
    }
    if (!knows_secret(guard, head->cookie))
        return refuse(403, head->token ? "This address was opened before, and opens once. Start 'dtsim app' again." :
                      "This browser is not the one that 'dtsim app' opened. Open the address that it printed.");
    return comes_from_own(guard, head, false) ? (struct guarded){.verdict = GUARD_PAGE} :
           refuse(403, "Another site asks for this page.");
}

/* The bytes that are announced; -1: none are, or it is no number. */
static long announced(const char *length)
{
    long bytes = 0;

    if (!length || !*length)
        return -1;
    for (; *length; length++) {
        if (*length < '0' || *length > '9')
            return -1;
        bytes = bytes > HTTP_BODY_MOST ? bytes : 10 * bytes + (*length - '0');
    }
    return bytes;
}

static struct guarded check_post(const struct guard *guard, const struct http_head *head)
{
    static const char json[] = "application/json";
    const char *compute = id_behind(head->path, "/compute/"), *cancel = id_behind(head->path, "/cancel/");
    long bytes = announced(head->length);

    if (!comes_from_own(guard, head, true))
        return refuse(403, "Another site asks.");
    if (!knows_secret(guard, head->cookie))
        return refuse(403, "This browser is not the one that 'dtsim app' opened.");
    if (!compute && !cancel)
        return refuse(404, "There is nothing of that name.");
    if (!head->type || strncmp(head->type, json, sizeof json - 1) || (head->type[sizeof json - 1] &&
                                                                     !strchr("; ", head->type[sizeof json - 1])))
        return refuse(415, "Expected application/json.");
    if (bytes < 0)
        return refuse(411, "Expected the length of the body.");
    if (bytes > HTTP_BODY_MOST)
        return refuse(413, "Expected at most 1 MiB.");
    return (struct guarded){.verdict = compute ? GUARD_COMPUTE : GUARD_CANCEL, .id = compute ? compute : cancel};
}

struct guarded guard_check(struct guard *guard, const struct http_head *head, double time)
{
    struct guarded found;

    if (!is_own(guard, head->host, ""))
        return refuse(421, "Expected the address that 'dtsim app' printed.");
    if (!strcmp(head->method, "GET"))
        found = check_get(guard, head);
    else if (!strcmp(head->method, "POST"))
        found = check_post(guard, head);
    else
        return refuse(405, "Expected GET or POST.");
    if (found.verdict != GUARD_REFUSED)
        guard->asked = time;
    return found;
}

bool guard_idle(const struct guard *guard, double time)
{
    return time - guard->asked > GUARD_IDLE;
}
