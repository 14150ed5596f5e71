/* files.S - a compiled network and its inputs, as they lie in flash; names in capitals are paths. */
#define FILE(name, path) \
    .balign 16; .globl name, name##_end; name: .incbin path; name##_end:

    .section .program, "a"
    FILE(program_file, PROGRAM_FILE)
    FILE(frame_file, FRAME_FILE)
    FILE(filter_file, FILTER_FILE)
    FILE(host_file, HOST_FILE)
    FILE(inputs, INPUTS)
