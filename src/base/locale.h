/* locale.h - numbers and letters as C has them, whatever locale the calling program has set. */
#ifndef MUC_LOCALE_H
#define MUC_LOCALE_H

/* As the system has locales; on Windows a caller has none but C. */
typedef struct muc_locale {
    void *c, *callers;
} muc_locale;

/* Sets the C locale for the calling thread alone, and gives it back what it had. */
muc_locale muc_locale_enter(void);
void muc_locale_leave(muc_locale *locale);

/* The first line of each public function that returns a status or a bool, and of each thread that
 * we start: printf, strtod, tolower and jansson obey the thread's locale until the function
 * returns. */
#define MUC_IN_C_LOCALE \
    muc_locale in_c_locale __attribute__((cleanup(muc_locale_leave), unused)) = muc_locale_enter()

#endif
