/* program.S - the program file, as it lies in flash; PROGRAM_FILE is its path. */
    .section .program, "a"
    .balign 16
    .globl program_file, program_file_end
program_file:
    .incbin PROGRAM_FILE
program_file_end:
