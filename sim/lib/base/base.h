/* base: memory arenas, growable arrays, places in files, and error messages for the user. */
#ifndef DTSIM_BASE_H
#define DTSIM_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Whether the address sanitizer is in this build. gcc and clang say it in different words. */
#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER true
#endif
#endif
#ifndef ADDRESS_SANITIZER
#define ADDRESS_SANITIZER false
#endif

/* An enum and its names, from one list: with `#define COLOURS(X) X(RED, "red") X(BLUE, "blue")`, the enum is
 * `enum colour { COLOURS(ENUM_VALUE) };` and `const char *const colour_names[] = ENUM_NAMES(COLOURS);` are the names,
 * by value, with a NULL at the end. */
#define ENUM_VALUE(value, name) value,
#define ENUM_NAME(value, name) [value] = name,
#define ENUM_NAMES(LIST) {LIST(ENUM_NAME) NULL}

/* A mistake in the program itself: prints file, line and message, and aborts. Never used for a user's mistake. */
#define BUG(...) bug_(__FILE__, __LINE__, __VA_ARGS__)
#define BUG_IF(condition) ((condition) ? BUG("%s", #condition) : (void)0)
_Noreturn void bug_(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* FNV-1a (Fowler, Noll, Vo), 64 bits, of further bytes; `hash` is HASH_START before the first ones. */
#define HASH_START 0xcbf29ce484222325u
static inline uint64_t hash_more(uint64_t hash, const void *bytes, size_t size)
{
    for (const unsigned char *at = bytes; size--; at++)
        hash = (hash ^ *at) * 0x100000001b3u;
    return hash;
}

/* Exit codes of the program (the contract of the command line). */
enum exit_code {
    EXIT_OK = 0,
    EXIT_UNEXPECTED = 1,   /* a failure that is not the user's fault */
    EXIT_USAGE = 2,        /* the command line is wrong */
    EXIT_SOME_FAILED = 3,  /* some scenarios of a sweep failed */
    EXIT_INPUT = 4,        /* an input file is wrong */
    EXIT_INFEASIBLE = 5,   /* out of memory, degrees that do not divide, values that do not go together */
    EXIT_NO_TOOL = 6,      /* a helper program, or a part of this one, is missing */
    EXIT_STOPPED = 7,      /* --budget is spent */
    EXIT_INTERRUPTED = 130,        /* a sweep was ended by Ctrl-C (128 + SIGINT, the exit code of shells) */
};

/* A place in a file. line 0: the whole file; file NULL: no file (the command line, an internal default). */
struct loc {
    const char *file;
    int line, column;      /* from 1 */
};

/* What an error is about, for code that can help with it. An infeasible scenario has the rule that forbids it: sweeps
 * count rows by rule. */
#define ERROR_KINDS(X) \
    X(ERROR_PLAIN, "")              /* anything else */ \
    X(ERROR_DEGREES, "degrees")     /* degrees do not divide the model, or do not go together */ \
    X(ERROR_GPUS, "gpus")           /* degrees need more GPUs than there are, or leave some over */ \
    X(ERROR_BATCH, "batch")         /* samples or micro-batches do not divide */ \
    X(ERROR_SCHEDULE, "schedule")   /* the schedule has no order for this number of ranks or micro-batches */ \
    X(ERROR_VALUES, "values")       /* values of several keys, each fine alone, do not go together */ \
    X(ERROR_FRAMEWORK, "framework") /* the framework's release does not have it */ \
    X(ERROR_MEMORY, "memory")       /* a scenario needs more memory than there is */
enum error_kind { ERROR_KINDS(ENUM_VALUE) };
extern const char *const error_kind_names[];

/* Up to ERROR_MAX messages, so that the user sees every mistake at once. Zero-initialise; error_release when done.
 * Fallible functions take it as their last parameter, return 0 or -1, and leave it untouched on success. */
enum { ERROR_MAX = 20 };
struct error {
    struct error_message {
        struct loc loc;
        enum exit_code code;
        enum error_kind kind;
        char *text;
    } messages[ERROR_MAX];
    int count;             /* messages held */
    int dropped;           /* further messages that did not fit */
    bool system;           /* one of them is error_system's: whoever goes on after errors passes these on */
};

/* Whether a message at this place may be shown: what is looked up for a message need not be for others. */
bool error_shows(const struct error *err, const struct loc *loc);
/* Adds one message (a line without "file:line:column: error:"; newlines and control characters are escaped) and
 * returns -1. The same text at the same place is added only once. Text and file name are copied. */
int error_add(struct error *err, enum exit_code code, struct loc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds a message of that kind with the code EXIT_INFEASIBLE, and returns -1. error_add with this code is of kind
 * ERROR_DEGREES. */
int error_infeasible(struct error *err, enum error_kind kind, struct loc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same, of kind ERROR_VALUES: a clash of several keys, whose values are valid one by one but not together. A value
 * that is invalid whatever the other keys say, an unknown key and a missing key are EXIT_INPUT. */
int error_clash(struct error *err, struct loc loc, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A row of a table of clashes. */
struct clash {
    bool found;
    struct loc loc;
    const char *text;      /* the message: a format (%d) of as many of the numbers as it has places */
    int numbers[3];
};
/* Adds a message of error_clash for each row that is found, in order. -1 if there is one, else 0. */
int clashes_add(struct error *err, const struct clash *clashes, size_t count);
/* Adds a message that the system refused an action, which the format names ("cannot open"): the reason by errno, and
 * what to try. A missing file (ENOENT, ENOTDIR) is a user's mistake (EXIT_INPUT). Any other failure may be temporary,
 * so it does not tell whether the file exists: the command ends, and its numbers never come from another file, or from
 * fewer files. Returns -1. */
int error_system(struct error *err, struct loc loc, const char *format, ...) __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__        /* which looks at one file at a time, and does not know what these return */
#define error_add(...) ((void)(error_add)(__VA_ARGS__), -1)
#define error_infeasible(...) ((void)(error_infeasible)(__VA_ARGS__), -1)
#define error_clash(...) ((void)(error_clash)(__VA_ARGS__), -1)
#define error_system(...) ((void)(error_system)(__VA_ARGS__), -1)
#endif
/* Adds the messages of `from`. */
void error_copy(const struct error *from, struct error *err);
/* For callers that go on after other errors: if `from` has a message of such a failure, copies its messages to `err`
 * and returns -1; else 0. */
int error_pass_system(const struct error *from, struct error *err);
/* Prints one line "file:line:column: error: text" per message, ordered by file name, line and column, then the number
 * of dropped messages. Prints "file: error: text" when the line is 0, "error: text" when there is no file. Uses colour
 * on a terminal unless NO_COLOR is set, and on any other file if CLICOLOR_FORCE is set. */
void error_print(const struct error *err, FILE *out);
/* EXIT_INPUT if any message has this code, else the code of the first message; EXIT_OK if there is no message. */
enum exit_code error_exit_code(const struct error *err);
void error_release(struct error *err);

/* Memory that is freed all at once, by arena_release. Zero-initialise. */
struct cache;
struct progress;
struct arena {
    struct arena_block *last;
    struct cache *cache;         /* where those who fill the arena find what they remember (base/cache.h), or NULL */
    struct progress *progress;   /* what those who fill it may take (base/progress.h), or NULL */
};
void *arena_alloc(struct arena *arena, size_t size);    /* zeroed, aligned for any type */
void *arena_take(struct arena *arena, size_t size);     /* the same with any bytes, for large tables that are filled */
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_release(struct arena *arena);                 /* it keeps its cache */
size_t arena_bytes(const struct arena *arena);           /* that it holds */
void arena_join(struct arena *arena, struct arena *other);       /* moves all memory of the other one into this one */
#define ARENA_ARRAY(arena, type, n) ((type *)arena_alloc((arena), sizeof(type) * (size_t)(n)))

/* Copies text into a buffer (of CLIP_SIZE) for a message; a longer text is cut and ends in "...". Returns buffer. */
enum { CLIP_SIZE = 64 };
char *text_clip(const char *text, char *buffer, size_t size);

/* Length of the byte order mark with which some editors begin UTF-8 files: 3, or 0 if there is none. */
size_t text_mark(const char *text, size_t length);

/* Reads a whole file of at most `most` bytes (a multiple of 1 MiB) and adds a zero byte. The caller frees the text.
 * NULL after an error, whose message names `what` the file is and stands at `loc`. A pipe is refused, because nobody may
 * ever write it; not by file_read_stream, for files that the command line names. */
char *file_read(const char *path, const char *what, size_t most, struct loc loc, size_t *length, struct error *err);
char *file_read_stream(const char *path, const char *what, size_t most, struct loc loc, size_t *length, struct error *err);

/* Ends the process with EXIT_UNEXPECTED and a line on standard error. Whatever is being written then has not got its
 * name yet (files/folder.h). A child that ends so is a failure that its parent reports. */
_Noreturn void memory_ran_out(void);
/* malloc, calloc, realloc and strdup that end the process so where there is no memory. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t count, size_t size);
/* Asks for large pages of memory behind bytes that will all be used: of 100 MB, small ones cost as much time as reading them. */
void large_pages(void *bytes, size_t size);
char *xstrdup(const char *text);
/* Text in memory that the caller frees. */
char *xprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *xvprintf(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
/* A stream into memory (open_memstream), and its end, after which the text is whole; the caller frees it. */
FILE *text_open(char **text, size_t *size);
void text_close(FILE *out, char *const *text);

/* Sorts; equal items keep their order, whatever the C library's qsort does. array_sort_by also gives `compare` the context. */
void array_sort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *));
void array_sort_by(void *items, size_t count, size_t size, int (*compare)(const void *, const void *, void *), void *context);
/* bsearch of an array that may be empty: the C library's takes no NULL. */
static inline void *array_find(const void *key, const void *items, size_t count, size_t size,
                               int (*compare)(const void *, const void *))
{
    return count ? bsearch(key, items, count, size, compare) : NULL;
}

/* A growable array is a struct with three members: TYPE *items; size_t count, capacity. Zero-initialise.
 * GROW adds one item and gives its address: *GROW(&list) = item. */
#ifdef __clang_analyzer__        /* which does not know that an array with a capacity has items */
#define HAS_ITEMS(list) BUG_IF(!(list)->items)
#else
#define HAS_ITEMS(list) ((void)0)
#endif
#define GROW(list) \
    ((list)->count == (list)->capacity \
        ? (void)((list)->capacity = (list)->capacity ? 2 * (list)->capacity : 16, \
                 (list)->items = xrealloc((list)->items, (list)->capacity, sizeof *(list)->items)) \
        : HAS_ITEMS(list), \
     &(list)->items[(list)->count++])

/* Makes room for so many items, no fewer than there are. */
#define RESERVE(list, most) \
    ((list)->capacity = (most) + 1, (list)->items = xrealloc((list)->items, (list)->capacity, sizeof *(list)->items))

/* Whether two texts are the same. Most differ in their first character, where no call is needed. */
static inline bool text_same(const char *a, const char *b)
{
    return *a == *b && !strcmp(a, b);
}

/* The greatest common divisor; of 0 and b: b. */
int gcd(int a, int b);
/* The least common multiple of two numbers above 0; 0: it is more than `most`. */
int lcm(int a, int b, int most);
/* Times and other sums that differ by no more than this share of them are the same but for rounding. */
#define ROUNDING 1e-12

/* The candidate that the fewest edits (insert, delete, replace, swap of neighbours) turn `word` into. Where all need
 * too many edits to be the intended word: one that has it as a part ("h100": "dgx-h100"), or NULL. Case does not
 * count, nor '-' instead of '_'. candidate(i) gives the i-th name, NULL past the last. */
const char *nearest(const char *word, const char *(*candidate)(size_t i, const void *context), const void *context);

#endif
