#include "scenario/train_section.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

int interval_parse(const char *text, struct interval *interval, char *why, size_t size)
{
    size_t digits = strspn(text, "0123456789"), blanks = strspn(text + digits, " ");
    const char *unit = text + digits + blanks;
    char shown[CLIP_SIZE], ignored[256];

    *interval = (struct interval){NAN, NAN, !strcmp(text, "auto")};
    if (interval->automatic)
        return 0;
    if (digits && digits < 16 && (!strcmp(unit, "steps") || !strcmp(unit, "step")))
        interval->steps = strtod(text, NULL);
    else if (unit_parse(UNIT_TIME, text, &interval->seconds, ignored, sizeof ignored))
        interval->seconds = NAN;
    if (interval->steps >= 1 || interval->seconds > 0)
        return 0;
    snprintf(why, size, "found '%s'; expected a time such as '10 min' or a number of steps such as '500 steps'",
             text_clip(text, shown, sizeof shown));
    return -1;
}
