/* boot_rp2040.S - the RP2040's second stage of 256 bytes, which its ROM copies from the begin of flash into SRAM and
 * calls: lets flash be read by its address, then starts the firmware whose vectors follow.
 *
 * RP2040 Datasheet, "Flash Second Stage" and its "Checksum", and "SSI", List of Registers. Read command 03h, which all serial
 * flashes have: 8 bits of command, 24 of address, 32 of data, at a fourth of the core's clock.
 */
    .syntax unified
    .cpu cortex-m0plus
    .thumb
    .section .boot, "ax"
boot:
    ldr     r0, ssi
    movs    r1, #0
    str     r1, [r0, #0x08] /* SSIENR: off while it is set up */
    movs    r2, #4
    str     r2, [r0, #0x14] /* BAUDR */
    ldr     r2, frames
    str     r2, [r0, #0x00] /* CTRLR0 */
    str     r1, [r0, #0x04] /* CTRLR1: one word */
    ldr     r2, command
    ldr     r3, spi_control
    str     r2, [r3]        /* SPI_CTRLR0 */
    movs    r2, #1
    str     r2, [r0, #0x08] /* SSIENR: on */
    ldr     r0, firmware
    ldr     r1, vtor
    str     r0, [r1]
    ldr     r1, [r0]
    msr     msp, r1
    ldr     r1, [r0, #4]
    bx      r1
    .balign 4
ssi:
    .word   0x18000000
spi_control:
    .word   0x180000f4
frames:
    .word   0x001f0300 /* DFS_32 = 31: 32 clocks of data; TMOD = 3: command and address, then data */
command:
    .word   0x03000218 /* XIP_CMD = 03h, INST_L = 2: 8 bits, ADDR_L = 6: 24 bits */
firmware:
    .word   0x10000100 /* behind these 256 bytes */
vtor:
    .word   0xe000ed08
    .org    252
    .word   0x6086ebf2 /* CRC-32 of the 252 bytes before: polynomial 0x04c11db7, from 0xffffffff, not reflected */
