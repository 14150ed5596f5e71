/* start_riscv.S - from reset to main on a RISC-V hart in machine mode. */
    .option arch, +zicsr
    .section .vectors, "ax"
    .globl reset
reset:
#if __riscv_xlen == 64 /* several harts may start; a small core may even lack the number */
    csrr    t0, mhartid
    bnez    t0, park
#endif
    la      sp, stack_top
    la      t0, trap_entry
    csrw    mtvec, t0
#ifdef __riscv_flen
    li      t0, 0x2000 /* mstatus.FS: the floating-point unit is on */
    csrs    mstatus, t0
#endif
#ifdef __riscv_vector
    li      t0, 0x600 /* mstatus.VS: the vector unit is on */
    csrs    mstatus, t0
#endif
    la      t0, data_start
    la      t1, data_end
    la      a0, data_load
1:  bgeu    t0, t1, 2f
    lw      a1, 0(a0)
    sw      a1, 0(t0)
    addi    a0, a0, 4
    addi    t0, t0, 4
    j       1b
2:  la      t0, bss_start
    la      t1, bss_end
3:  bgeu    t0, t1, 4f
    sw      zero, 0(t0)
    addi    t0, t0, 4
    j       3b
4:  call    main
    call    host_exit

#if __riscv_xlen == 64
park:
    wfi
    j       park
#endif

    .balign 4
trap_entry:
    call    host_open
    li      a0, 1
    la      a1, message
    call    host_print
    li      a0, 1
    call    host_exit

    .section .rodata
message:
    .asciz  "trap\n"
