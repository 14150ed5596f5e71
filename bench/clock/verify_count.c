/* verify_count.c - what mur_verify takes of the CPU for a program too large for the boards: of its
 * file only the words that the verifier reads are linked in, which bench/clock/count writes to
 * program_words.h, with the sizes of the read-only regions.
 */
#include "markers.h"
#include "mur.h"
#include "semihosting.h"

#include "program_words.h"

static mur_program program;
static mur_verifier verifier;

int main(void);

int main(void)
{
    mur_status status;

    host_open();
    program.mach = (const mur_mach *)mach_words;
    program.meta = (const mur_meta *)meta_words;
    program.entries = (const mur_entr *)entr_words;
    program.entry_count = sizeof(entr_words) / sizeof(mur_entr);
    program.code = code_words;
    program.tables = tabl_words;
    program.section_bytes[MUR_SECTION_CODE] = sizeof(code_words);
    program.section_bytes[MUR_SECTION_TABL] = sizeof(tabl_words);
    program.region_bytes[MUR_WGTS] = WGTS_BYTES;
    program.region_bytes[MUR_PARM] = PARM_BYTES;
    program.region_bytes[MUR_KV] = program.meta->kv_bytes;
    program.region_bytes[MUR_IO] = program.meta->io_bytes;
    COUNT_BEGIN();
    status = mur_verify(&program, &verifier);
    COUNT_END();
    if (status != MUR_OK) {
        host_print(HOST_STDERR, "the program is refused\n");
        host_exit(1);
    }
    return 0;
}
