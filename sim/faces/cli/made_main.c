/* Makes what follows from files of the release, when the program is built (files/made.h): made_main OUT FILE.yaml...
 * It needs DTSIM_DATA, the folder of the release. */
#include <errno.h>

#include "base/base.h"
#include "base/decimal.h"
#include "config/conf.h"
#include "evidence/evidence.h"
#include "files/made.h"

int main(int argc, char **argv)
{
    struct made made = {0};
    struct error err = {0};
    int rc = argc < 2 ? EXIT_USAGE : evidence_make(&made, &err);

    for (int i = 2; i < argc && !rc; i++)
        rc = conf_make(&made, argv[i], &err);
    if (!rc && made_write(&made, argv[1]))
        rc = error_system(&err, (struct loc){.file = argv[1]}, "cannot write");
    error_print(&err, stderr);
    error_release(&err);
    return rc ? EXIT_UNEXPECTED : EXIT_OK;
}
