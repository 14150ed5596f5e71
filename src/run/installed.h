/* installed.h - what belongs to muc beside its code: the built-in model, the scripts of emulated
 * boards. */
#ifndef MUC_INSTALLED_H
#define MUC_INSTALLED_H

#include <stdbool.h>
#include <stdint.h>

/* The folder share/muc that lies where this code lies: looked for beside the shared library, or
 * beside the program that holds the static one, in two folders above that, and then where muc was
 * to be installed. Valid until the process ends, even where no such folder is. */
const char *muc_data_folder(void);
/* A number of the file that holds this code: another one after it was built, or installed, anew.
 * False where no such file is to be found. */
bool muc_build_number(uint64_t *out);
/* The folder of the built-in model in it. */
const char *muc_builtin_folder(void);

#endif
