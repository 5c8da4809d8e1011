"""200 names that try to be something else: markup, templates, control characters, text that turns around, bad UTF-8."""
_HIT = "window.hit=1"
_SHAPES = (
    "<script>{0}</script>", "</script><script>{0}</script>", "<img src=x onerror={0}>", "<svg onload={0}>", "${{{0}}}",
    "{{{{{0}}}}}", "javascript:{0}", "\"><b onmouseover={0}>", "'-{0}-'", "</title><script>{0}</script>", "<!--<script>{0}",
    "--><script>{0}</script>", "]]><script>{0}</script>", "&lt;script&gt;{0}&lt;/script&gt;", "<a href=javascript:{0}>x</a>",
    "<iframe srcdoc='<script>{0}</script>'>", "<style>@import 'http://host.invalid/'</style>", "<link rel=stylesheet href=//host.invalid/>",
    "<base href=//host.invalid/>", "<meta http-equiv=refresh content='0;url=//host.invalid'>", "\\u003cscript\\u003e{0}", "__proto__",
    "constructor", "toString", "%s%n%x", "`{0}`", "id=\"data\">", "=cmd|' /C calc'!A0",
)
_MARKS = ("", "\u202e", "\u2066", "\u200b", "\ufeff", "\x01", "\x1b[31m", "\x7f")

NAMES = [(mark + shape.format(_HIT)).encode() for shape in _SHAPES for mark in _MARKS][:194]
NAMES += [b"\xff\xfe<script>", b"\xc0\xaf", b"\xed\xa0\x80", b"a" * 65536, b"<b>" * 20000, " \U0001f600".encode()]
assert len(NAMES) == 200
