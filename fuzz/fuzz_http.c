/* Requests of muc playground: a head is found within the bytes, and the page goes to GET and HEAD
 * of "/" alone. */
#include <stdlib.h>
#include <string.h>

#include "driver/playground/http_request.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    size_t head = http_head_size(text, size);
    bool is_head = false;
    http_answer answer;

    if (head > size || (head > 0 && (head < 4 || memcmp(text + head - 4, "\r\n\r\n", 4) != 0)))
        abort();
    answer = http_judge(text, head > 0 ? head : size, &is_head);
    if (answer == HTTP_200 && memcmp(text, is_head ? "HEAD / HTTP/1." : "GET / HTTP/1.", 13) != 0)
        abort();
    return 0;
}
