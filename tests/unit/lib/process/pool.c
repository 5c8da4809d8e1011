/* pool: every piece ends once, with a reply or as lost, whatever its process does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "process/pool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECES = 200 };

struct heard {
    uint64_t next;
    int replies[PIECES], crashes[PIECES], timeouts[PIECES];
    bool notes;                  /* of a lost piece the note was its number */
    char words[256];             /* of the last crash */
    int alive;                   /* a pipe's end, for announce_and_hang */
    uint64_t stop;               /* after this number of replies this process gets SIGINT; 0: never */
    int sum, signal;
};

static bool next(void *context, uint64_t *piece)
{
    struct heard *heard = context;

    *piece = heard->next;
    return heard->next++ < PIECES;
}

static void square(void *context, uint64_t piece, char *note, FILE *reply)
{
    (void)context;
    snprintf(note, POOL_NOTE, "%d", (int)piece);
    fprintf(stderr, "piece %d\n", (int)piece);
    fprintf(reply, "%d", (int)(piece * piece));
}

static int done(void *context, uint64_t piece, const char *reply, size_t length, struct error *err)
{
    struct heard *heard = context;

    (void)err;
    assert_int_equal(length, strlen(reply));
    assert_int_equal(atoi(reply), piece * piece);
    heard->replies[piece]++;
    if (heard->stop && ++heard->sum == (int)heard->stop)
        kill(getpid(), heard->signal);
    return 0;
}

static int lost(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                struct error *err)
{
    struct heard *heard = context;

    (void)err;
    (why == POOL_CRASH ? heard->crashes : heard->timeouts)[piece]++;
    heard->notes &= atoi(note) == (int)piece;
    if (why == POOL_CRASH)
        snprintf(heard->words, sizeof heard->words, "%s", how->messages[0].text);
    return 0;
}

static enum pool_end run(struct heard *heard, void (*work)(void *, uint64_t, char *, FILE *), size_t jobs,
                         double timeout)
{
    const struct pool pool = {.jobs = jobs, .timeout = timeout, .what = "it", .context = heard, .work = work,
                              .next = next, .done = done, .lost = lost};
    struct error err = {0};
    enum pool_end end;

    heard->notes = true;
    end = pool_run(&pool, &err);
    assert_int_equal(err.count, 0);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);      /* nobody is left behind */
    return end;
}

static void test_replies(void **state)
{
    static const size_t jobs[] = {1, 3, 16};

    (void)state;
    for (size_t j = 0; j < COUNT(jobs); j++) {
        struct heard heard = {0};

        assert_int_equal(run(&heard, square, jobs[j], 0), POOL_ALL);
        for (int i = 0; i < PIECES; i++)
            assert_int_equal(heard.replies[i], 1);
    }
}

/* Pieces 7, 17, 27, ... die in one of three ways. */
static void die_at_times(void *context, uint64_t piece, char *note, FILE *reply)
{
    square(context, piece, note, reply);
    if (piece % 30 == 7)
        _exit(3);
    signal(SIGABRT, SIG_DFL);
    if (piece % 30 == 17)
        abort();
    if (piece % 30 == 27)
        exit(0);
}

static void test_crashes(void **state)
{
    struct heard heard = {0};

    (void)state;
    assert_int_equal(run(&heard, die_at_times, 4, 0), POOL_ALL);
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(heard.crashes[i], i % 10 == 7);
        assert_int_equal(heard.replies[i], i % 10 != 7);
    }
    assert_true(heard.notes);
    /* The last words are of this piece alone, not of all pieces of the worker. */
    assert_non_null(strstr(heard.words, ": piece 1"));
    assert_null(strstr(heard.words, "\n"));
}

static void hang_at_times(void *context, uint64_t piece, char *note, FILE *reply)
{
    square(context, piece, note, reply);
    while (piece % 100 == 33)
        pause();
}

static void announce_and_hang(void *context, uint64_t piece, char *note, FILE *reply)
{
    const struct heard *heard = context;
    pid_t worker = getpid();

    if (write(heard->alive, &worker, sizeof worker) == sizeof worker)
        hang_at_times(context, piece, note, reply);
}

static void test_hangs(void **state)
{
    struct heard heard = {0};

    (void)state;
    assert_int_equal(run(&heard, hang_at_times, 3, 2), POOL_ALL);
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(heard.timeouts[i], i % 100 == 33);
        assert_int_equal(heard.replies[i], i % 100 != 33);
    }
    assert_true(heard.notes);
}

/* After SIGINT no piece begins; those that run end. After SIGTERM they are killed. */
static void test_signals(void **state)
{
    struct heard soft = {.stop = 20, .signal = SIGINT}, hard = {.stop = 20, .signal = SIGTERM};
    int ended = 0;

    (void)state;
    assert_int_equal(run(&soft, square, 2, 0), POOL_INTERRUPTED);
    for (int i = 0; i < PIECES; i++)
        ended += soft.replies[i];
    assert_int_equal(ended, (int)(soft.next < PIECES ? soft.next : PIECES));
    assert_in_range(ended, 20, 23);      /* another reply may come at once with the last, and two pieces run */
    assert_int_equal(run(&hard, square, 2, 0), POOL_INTERRUPTED);
}

/* Workers end with their parent, however it ends: then nobody holds the pipe's end that they inherited. */
static void test_orphans(void **state)
{
    int alive[2];
    struct pollfd end = {.events = POLLIN};
    pid_t parent, worker = 0;
    int ended;

    (void)state;
    assert_int_equal(pipe(alive), 0);
    parent = fork();
    if (!parent) {
        struct heard heard = {.next = PIECES - 167, .alive = alive[1]};     /* the first piece hangs: 33 */

        close(alive[0]);
        run(&heard, announce_and_hang, 1, 0);
        _exit(0);
    }
    close(alive[1]);
    assert_int_equal(read(alive[0], &worker, sizeof worker), sizeof worker);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    end.fd = alive[0];
    ended = poll(&end, 1, 10000);
    if (ended != 1)
        kill(worker, SIGKILL);
    close(alive[0]);
    assert_int_equal(ended, 1);
}

/* A worker that dies when it has nothing to do is noticed with its next piece, of which it has not noted anything. */
static void square_and_die_later(void *context, uint64_t piece, char *note, FILE *reply)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};

    square(context, piece, note, reply);
    signal(SIGALRM, SIG_DFL);
    setitimer(ITIMER_REAL, &soon, NULL);
}

static bool next_late(void *context, uint64_t *piece)
{
    struct heard *heard = context;

    if (heard->next)
        usleep(200000);
    *piece = heard->next;
    return heard->next++ < 2;
}

static int lost_unnoted(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                        struct error *err)
{
    struct heard *heard = context;

    (void)how;
    (void)err;
    assert_int_equal(piece, 1);
    assert_int_equal(why, POOL_CRASH);
    assert_string_equal(note, "");
    heard->crashes[piece]++;
    return 0;
}

static void test_dies_idle(void **state)
{
    struct heard heard = {0};
    const struct pool pool = {.jobs = 1, .what = "it", .context = &heard, .work = square_and_die_later,
                              .next = next_late, .done = done, .lost = lost_unnoted};
    struct error err = {0};

    (void)state;
    assert_int_equal(pool_run(&pool, &err), POOL_ALL);
    assert_int_equal(heard.replies[0], 1);
    assert_int_equal(heard.crashes[1], 1);
}

/* Words that come through a pipe while others are worked on. The piece "kill" kills its process, and "hang" hangs until
 * it is not wanted any more. */
struct talk {
    int pipe;                    /* that words are read from */
    char words[200];
    size_t length, handed;       /* bytes that are there, and that have been handed out */
    uint64_t at[50];             /* where each piece begins */
    uint64_t count;
    bool ended;
    int good, crashes, unwanted;
};

static void watch_pipe(void *context, struct pollfd *files)
{
    struct talk *talk = context;

    files[0] = (struct pollfd){.fd = talk->ended ? -1 : talk->pipe, .events = POLLIN};
    files[1] = (struct pollfd){.fd = -1};
}

static int read_pipe(void *context, const struct pollfd *files, struct error *err)
{
    struct talk *talk = context;
    ssize_t count = files[0].revents ? read(talk->pipe, talk->words + talk->length, 1) : 1;

    (void)err;
    talk->length += files[0].revents && count > 0;
    talk->ended |= count <= 0;
    return !talk->ended;
}

static bool next_word(void *context, uint64_t *piece)
{
    struct talk *talk = context;
    char *end = memchr(talk->words + talk->handed, ' ', talk->length - talk->handed);

    if (!end)
        return false;
    *piece = talk->count;
    talk->at[talk->count++] = talk->handed;
    talk->handed = (size_t)(end - talk->words) + 1;
    return true;
}

static const char *word_of(void *context, uint64_t piece, size_t *length)
{
    struct talk *talk = context;
    const char *word = talk->words + talk->at[piece];

    *length = strcspn(word, " ");
    return word;
}

static void say_word(void *context, uint64_t piece, const char *word, size_t length, FILE *reply)
{
    (void)context, (void)piece;
    assert_true(!word[length]);
    if (!strcmp(word, "kill"))
        raise(SIGKILL);
    while (!strcmp(word, "hang"))
        pause();
    fputs(word, reply);
}

static int said_word(void *context, uint64_t piece, const char *reply, size_t length, struct error *err)
{
    struct talk *talk = context;
    size_t expected;
    const char *word = word_of(talk, piece, &expected);

    (void)err;
    assert_int_equal(length, expected);
    assert_memory_equal(reply, word, length);
    talk->good++;
    return 0;
}

static int lost_word(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                     struct error *err)
{
    struct talk *talk = context;

    (void)piece, (void)note, (void)how, (void)err;
    talk->crashes += why == POOL_CRASH;
    talk->unwanted += why == POOL_UNWANTED;
    return 0;
}

static bool hangs(void *context, uint64_t piece, double seconds)
{
    size_t length;

    return !strncmp(word_of(context, piece, &length), "hang", 4) && seconds > 0.1;
}

static void test_inlet(void **state)
{
    static const struct pool_inlet inlet = {watch_pipe, read_pipe, word_of, say_word, hangs};
    static const char *const words[] = {"a ", "kill ", "bc hang d ", "kill efg ", "h i j ", "cut"};
    struct talk talk = {0};
    struct pool pool = {.jobs = 2, .what = "the talk", .context = &talk, .inlet = &inlet,
                        .next = next_word, .done = said_word, .lost = lost_word};
    struct error err = {0};
    int ends[2];
    pid_t writer;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    writer = fork();
    if (!writer) {
        for (size_t i = 0; i < COUNT(words); i++)
            if (write(ends[1], words[i], strlen(words[i])) < 0 || usleep(20000))
                _exit(1);
        _exit(0);
    }
    close(ends[1]);
    talk.pipe = ends[0];
    assert_int_equal(pool_run(&pool, &err), POOL_ALL);
    assert_int_equal(talk.good, 7);
    assert_int_equal(talk.crashes, 2);
    assert_int_equal(talk.unwanted, 1);
    close(ends[0]);
    waitpid(writer, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies), cmocka_unit_test(test_crashes), cmocka_unit_test(test_hangs),
        cmocka_unit_test(test_signals), cmocka_unit_test(test_orphans), cmocka_unit_test(test_dies_idle),
        cmocka_unit_test(test_inlet),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
