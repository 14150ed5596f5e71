/* http_request.h - the head of a request of HTTP/1.0 or 1.1, judged for a server of one page. */
#ifndef DRIVER_HTTP_REQUEST_H
#define DRIVER_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HTTP_MOST_HEAD = 16 << 10 /* bytes of a head, cookies of other servers of this host included */
};

/* number, words: what is answered */
#define HTTP_ANSWER_TABLE(X) \
    X(200, "OK") \
    X(400, "Bad Request") \
    X(404, "Not Found") \
    X(405, "Method Not Allowed") \
    X(408, "Request Timeout") \
    X(431, "Request Header Fields Too Large") \
    X(505, "HTTP Version Not Supported")

typedef enum http_answer {
#define HTTP_ANSWER_ENUM(number, words) HTTP_##number = number,
    HTTP_ANSWER_TABLE(HTTP_ANSWER_ENUM)
#undef HTTP_ANSWER_ENUM
} http_answer;

/* Bytes of the head, up to the end of its empty line; 0: that has not come yet. */
size_t http_head_size(const char *data, size_t size);
/* head: as http_head_size found it. *is_head: the answer has no body. */
http_answer http_judge(const char *head, size_t size, bool *is_head);

#endif
