/* protobuf: messages of Protocol Buffers in their binary form (protobuf.dev, "Encoding"): a field is a varint of 8 times
 * its number + its type, then a varint, 8 bytes, or a length and that many bytes. */
#ifndef DTSIM_PROTOBUF_H
#define DTSIM_PROTOBUF_H

#include "trace/bytes.h"

/* A message that is put together, then written with its length. Zero-initialise; free the items. */
struct protobuf_message { uint8_t *items; size_t count, capacity; };

void message_varint(struct protobuf_message *message, uint32_t field, uint64_t value);       /* bool, enum, int and uint */
void message_fixed64(struct protobuf_message *message, uint32_t field, uint64_t value);
void message_double(struct protobuf_message *message, uint32_t field, double value);
/* A name of our own. */
void message_name(struct protobuf_message *message, uint32_t field, const char *name);
/* A text of others as UTF-8; what is none, or steers a terminal, becomes an escape. */
void message_text(struct protobuf_message *message, uint32_t field, const char *text);
void message_message(struct protobuf_message *message, uint32_t field, const struct protobuf_message *inner);
/* Writes it: behind the tag of a field, or, `field` 0, behind its length alone. Empties it. */
void message_write(struct protobuf_message *message, uint32_t field, struct bytes *bytes);

#endif
