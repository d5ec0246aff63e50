/* SPDX-License-Identifier: MIT
 *
 * The version of the library at run time. It is the headers' own, so the two can only differ if a program was built
 * against other headers than the library it runs with; that is what lst_version is there to show.
 */
#include "leanstep/leanstep.h"

const char *lst_version(void)
{
    return LST_VERSION;
}
