#include "trace/protobuf.h"

#include <stdlib.h>

#include "base/text.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, VARINT_MOST = 10 };

/* Writes a varint: 7 bits a byte, the lowest first; all bytes but the last have their highest bit set. */
static uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *room(struct protobuf_message *message, size_t bytes)
{
    if (message->capacity - message->count < bytes) {
        message->capacity = 2 * message->capacity + bytes;
        message->items = xrealloc(message->items, message->capacity, 1);
    }
    return message->items + message->count;
}

static void end_at(struct protobuf_message *message, const uint8_t *at)
{
    message->count = (size_t)(at - message->items);
}

void message_varint(struct protobuf_message *message, uint32_t field, uint64_t value)
{
    uint8_t *at = room(message, 2 * VARINT_MOST);

    end_at(message, put_varint(put_varint(at, field << 3 | VARINT), value));
}

void message_fixed64(struct protobuf_message *message, uint32_t field, uint64_t value)
{
    uint8_t *at = put_varint(room(message, VARINT_MOST + 8), field << 3 | FIXED64);

    for (int i = 0; i < 8; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    end_at(message, at);
}

void message_double(struct protobuf_message *message, uint32_t field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    message_fixed64(message, field, bits);
}

static void put_bytes(struct protobuf_message *message, uint32_t field, const void *bytes, size_t length)
{
    uint8_t *at = room(message, 2 * VARINT_MOST + length);

    at = put_varint(put_varint(at, field << 3 | LENGTH), length);
    if (length)
        memcpy(at, bytes, length);
    end_at(message, at + length);
}

void message_name(struct protobuf_message *message, uint32_t field, const char *name)
{
    put_bytes(message, field, name, strlen(name));
}

void message_text(struct protobuf_message *message, uint32_t field, const char *text)
{
    size_t length = 0;
    char *plain;

    while (text[length] >= ' ' && text[length] <= '~')
        length++;
    if (!text[length]) {
        put_bytes(message, field, text, length);
        return;
    }
    plain = text_made(TEXT_LINE, text);
    put_bytes(message, field, plain, strlen(plain));
    free(plain);
}

void message_message(struct protobuf_message *message, uint32_t field, const struct protobuf_message *inner)
{
    put_bytes(message, field, inner->items, inner->count);
}

void message_write(struct protobuf_message *message, uint32_t field, struct bytes *bytes)
{
    uint8_t head[2 * VARINT_MOST], *at = head;

    at = field ? put_varint(at, field << 3 | LENGTH) : at;
    at = put_varint(at, message->count);
    bytes_put(bytes, (const char *)head, (size_t)(at - head));
    for (size_t done = 0, part; done < message->count; done += part) {
        part = message->count - done < BYTES_MOST ? message->count - done : BYTES_MOST;
        bytes_put(bytes, (const char *)message->items + done, part);
    }
    message->count = 0;
}
