/* main.c - firmware of docs/TUTORIAL.md: tells which gesture a recording is. */
#include "gesture.h"
#include "semihosting.h"

/* the recording, a file of NumPy: 10 bytes, the text that describes it, binary32 numbers */
extern const uint8_t program_file[];

static uint8_t arena[GESTURE_ARENA_BYTES] __attribute__((aligned(GESTURE_ARENA_ALIGNMENT)));

static int8_t quantize(float x)
{
    float scaled = x / GESTURE_ACCELERATION_INT8_SCALE;
    int32_t level = (int32_t)(scaled < 0 ? scaled - 0.5f : scaled + 0.5f) +
                    GESTURE_ACCELERATION_INT8_ZERO_POINT;

    return (int8_t)(level < -128 ? -128 : level > 127 ? 127 : level);
}

int main(void)
{
    static const char *const names[GESTURE_FC_INT8_ELEMENTS] = { "rest\n", "circle\n", "shake\n",
                                                                 "tap\n" };
    const uint8_t *numbers = program_file + 10 + program_file[8] + 256 * program_file[9];
    gesture_inputs inputs;
    gesture_outputs outputs;
    uint32_t best = 0;

    host_open();
    gesture_init(arena, &inputs, &outputs);
    for (uint32_t i = 0; i < GESTURE_ACCELERATION_INT8_ELEMENTS; i++)
        inputs.acceleration_int8[i] = quantize(((const float *)(const void *)numbers)[i]);
    gesture_run(arena);
    for (uint32_t i = 1; i < GESTURE_FC_INT8_ELEMENTS; i++)
        if (outputs.fc_int8[i] > outputs.fc_int8[best])
            best = i;
    host_print(HOST_STDOUT, names[best]);
    return 0;
}
