/* launch_state: what a launch keeps. */
#include "launch/launch.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/base.h"

void launch_warn(struct launch *launch, struct arena *arena, struct loc loc, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *GROW(&launch->warnings) = (struct launch_warning){loc, arena_strdup(arena, text)};
}

void launch_release(struct launch *launch)
{
    free(launch->launcher.items);
    free(launch->arguments.items);
    free(launch->warnings.items);
    free(launch->doubts.items);
}
