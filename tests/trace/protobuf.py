"""Protocol Buffers read by a table of fields: messages as dicts of lists. A field that is not in the table is an error."""
import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
        assert shift < 70, "a varint of more than 10 bytes"


def read(data, schema, name):
    """schema[name][field] = (key, type): int, double, fixed64, text, or the name of a message."""
    message, at, fields = {}, 0, schema[name]
    while at < len(data):
        tag, at = varint(data, at)
        field, wire = tag >> 3, tag & 7
        assert field in fields, f"{name} has no field {field}"
        key, kind = fields[field]
        if wire == 0:
            value, at = varint(data, at)
            assert kind == "int", f"{name}.{key} is a varint"
        elif wire == 1:
            (value,) = struct.unpack_from("<d" if kind == "double" else "<Q", data, at)
            assert kind in ("double", "fixed64"), f"{name}.{key} has 8 bytes"
            at += 8
        else:
            assert wire == 2, f"{name}.{key} has the wire type {wire}"
            length, at = varint(data, at)
            assert at + length <= len(data), f"{name}.{key} is cut"
            value, at = data[at:at + length], at + length
            value = value.decode() if kind == "text" else read(value, schema, kind)
        message.setdefault(key, []).append(value)
    return message


def one(message, key, missing=None):
    values = message.get(key, [])
    assert len(values) <= 1, f"several {key}"
    return values[0] if values else missing
