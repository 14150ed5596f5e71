/* locale_posix.c - sets the C locale for the calling thread, and restores what it had. */
#include "base/locale.h"

#include <locale.h>

/* The C locale is a constant of the C library, so newlocale takes no memory for it. */
muc_locale muc_locale_enter(void)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    return (muc_locale){ .c = c, .callers = uselocale(c) };
}

void muc_locale_leave(muc_locale *locale)
{
    uselocale(locale->callers);
    freelocale(locale->c);
}
