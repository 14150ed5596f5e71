/* boot_ra2l1.S - the option-setting memory that Renesas's RA2L1 has inside its flash, at 0x400 to 0x43b: as erased, which leaves watchdogs
 * off and memory unprotected. RA2L1 User's Manual, "Option-Setting Memory".
 */
    .section .behind_vectors, "a"
    .balign 1024 /* vectors are shorter than that */
    .fill   15, 4, 0xffffffff
