/* memory: the allocations of base.h. The program ends here, and only here, when memory runs out. */
#include "base/base.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void memory_ran_out(void)
{
    static const char message[] = "error: out of memory; expected more of it: end other programs, raise the limit "
                                  "('ulimit -v'), or try a smaller scenario\n";

    if (write(STDERR_FILENO, message, sizeof message - 1) < 0)
        _exit(EXIT_UNEXPECTED);
    _exit(EXIT_UNEXPECTED);
}

static void *there(void *memory)
{
    if (!memory)
        memory_ran_out();
    return memory;
}

void *xmalloc(size_t size)
{
    return there(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
    return there(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *old, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        memory_ran_out();
    return there(realloc(old, count && size ? count * size : 1));
}

char *xstrdup(const char *text)
{
    return there(strdup(text));
}

char *xvprintf(const char *format, va_list args)
{
    char *text;

    if (vasprintf(&text, format, args) < 0)
        memory_ran_out();
    return text;
}

char *xprintf(const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = xvprintf(format, args);
    va_end(args);
    return text;
}

FILE *text_open(char **text, size_t *size)
{
    return there(open_memstream(text, size));
}

void text_close(FILE *out, char *const *text)
{
    bool failed = ferror(out);

    /* glibc gives the text its final size here, and where that fails there is none, and no other sign of it. */
    if (fclose(out) || failed || !*text)
        memory_ran_out();
}

void large_pages(void *bytes, size_t size)
{
    enum { LARGE = 8 << 20 };        /* B */
    size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (page - (uintptr_t)bytes % page) % page;

    if (size > LARGE)
        madvise((char *)bytes + before, size - before, MADV_HUGEPAGE);       /* where it is refused, small ones do */
}
