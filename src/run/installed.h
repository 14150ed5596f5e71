/* installed.h - what belongs to muc beside its code: the built-in model, the scripts of emulated
 * boards. */
#ifndef MUC_INSTALLED_H
#define MUC_INSTALLED_H

/* The folder share/muc that lies where this code lies: looked for beside the shared library, or
 * beside the program that holds the static one, in two folders above that, and then where muc was
 * to be installed. Valid until the process ends, even where no such folder is. */
const char *muc_data_folder(void);

#endif
