/* uthinker_asm.h - program files as text, and back: byte for byte.
 *
 * A line is a statement; ';' begins a comment. Numbers are decimal or 0x hexadecimal.
 *
 *     utp 2.0                      first line
 *     section CODE [at 288]        the statements of a section follow; `at` only where the section
 *                                  does not begin right after the one before
 *     NAME = NUMBER                MACH, META: a word of mur_sections.def, in order
 *     entry kind=1 start=0 ..      ENTR: a row of words
 *     gold token=1 ..              GOLD: a row of words
 *     table 260 868 ..             TABL: begins a table; `values 868 ..` continues it
 *     name 12 "Q"                  DEBG: the name of a word of CODE
 *     hex 00ff..                   bytes, in any section; `zero N`: N of them that are 0
 *
 * and in CODE, one an item:
 *
 *     MM wait=0,8,10 sig=4 saddr=0 rows=P17 ..   every field; buffers and regions by name
 *     P17:s5 = ADD pos, 64                       EVAL: label, slot, operator, operands
 *     P18:s6, P19:s7 = TABLE 3, P17              t[i] of table 3 and t[i + 1] - t[i]
 *     for c:s9 < P20 most 8                      or `for l:s3 < 5`; `next` ends the body
 *     end
 *     word 0x00000010                            what is not an item
 *
 * A Placeholder shows as the label that the EVAL before it gives to its slot (without DEBG: s5), a
 * slot of an input as pos, m or end.
 */
#ifndef MUC_UTHINKER_ASM_H
#define MUC_UTHINKER_ASM_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/text.h"
#include "targets/uthinker/lower/lower_llama.h"

/* Appends the text of a program file, which must be aligned to 16 bytes and is checked as by
 * muc_container_open. CODE may hold anything. */
muc_status muc_uthinker_disassemble(muc_context *ctx, muc_bytes program, muc_text *out);

/* The program of a text, in arena. Fails with MUC_MALFORMED naming line and column, or if the whole
 * is not what muc_container_open takes. */
muc_status muc_uthinker_assemble(muc_context *ctx, muc_arena *arena, muc_bytes text,
                                 muc_bytes *out);

/* Appends the instructions that an entry issues for m tokens from position pos: Placeholders
 * resolved by the runtime's interpreter. Fails with MUC_BUG if the verifier refuses the program,
 * with MUC_USAGE if there is no such entry, or pos or m is out of range. */
muc_status muc_uthinker_list_resolved(muc_context *ctx, muc_bytes program, muc_entry_kind kind,
                                      uint32_t pos, uint32_t m, muc_text *out);

#endif
