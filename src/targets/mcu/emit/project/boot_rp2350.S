/* boot_rp2350.S - the block IMAGE_DEF that the RP2350's ROM looks for in the first 4 KiB of flash: an image for Arm, in secure state, whose
 * vectors are at its begin. Datasheet 5.9.5.1: the least that boots.
 */
    .section .behind_vectors, "a"
    .balign 4
    .word   0xffffded3 /* begins a block */
    .word   0x10210142 /* item IMAGE_TYPE of one word: executable, secure, Arm, RP2350 */
    .word   0x000001ff /* the last item, behind one word of items */
    .word   0          /* the next block: this one again */
    .word   0xab123579 /* ends a block */
