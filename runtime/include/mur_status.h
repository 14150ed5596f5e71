/* mur_status.h - what a function of the runtime can answer. */
#ifndef MUR_STATUS_H
#define MUR_STATUS_H

/* name, value, meaning */
#define MUR_STATUS_TABLE(X) \
    X(OK, 0, "success") \
    X(YIELD, 1, "not finished; call again later") \
    X(E_MALFORMED, 2, "the data violate their format, or are damaged") \
    X(E_UNSUPPORTED, 3, "valid data, but this build does not implement it") \
    X(E_NOFIT, 4, "the caller's memory is too small") \
    X(E_MACHINE, 5, "made for another machine") \
    X(E_VERIFY, 6, "the verifier refuses the program") \
    X(E_INPUT, 7, "an input is outside its range") \
    X(E_FAULT, 8, "an engine reported a fault")

typedef enum mur_status {
#define MUR_STATUS_ENUM(name, value, meaning) MUR_##name = value,
    MUR_STATUS_TABLE(MUR_STATUS_ENUM)
#undef MUR_STATUS_ENUM
} mur_status;

#endif
