"""Limits for the formatters of Rust's values that come with the compiler: without them a text of megabytes or a map of some
hundred thousand entries is read byte by byte, and LLDB answers nothing meanwhile."""

import lldb
import lldb_lookup as lookup
import lldb_providers as providers

MAX_CHILDREN = 200
MAX_TEXT_BYTES = 2000
# Of a map, which has a byte for each place.
MAX_PLACES = 1 << 16
# Where the number of elements is: in sequences, maps and sets.
SIZES = ("len", "length", "base.table.table.items", "base.map.table.table.items", "map.table.items")


def limit(provider):
    """Lists no more than the first children."""
    count = provider.num_children
    provider.num_children = lambda self: min(count(self), MAX_CHILDREN)


def member(value, path):
    for name in path.split("."):
        value = value.GetNonSyntheticValue().GetChildMemberWithName(name)
    return value


def size(value, _):
    found = next((it for it in (member(value, path) for path in SIZES) if it.IsValid()), None)
    return f"size={found.GetValueAsUnsigned() if found else value.GetNumChildren()}"


def text(value, pointer, length):
    if length == 0:
        return '""'
    error = lldb.SBError()
    data = value.GetProcess().ReadMemory(pointer, min(length, MAX_TEXT_BYTES), error)
    if not error.Success():
        return None
    more = "…" if length > MAX_TEXT_BYTES else ""
    return '"' + data.decode("utf8", "replace") + '"' + more


def string(value, _):
    vec = member(value, "vec")
    pointer = member(vec, "buf.inner.ptr.pointer.pointer").GetValueAsUnsigned()
    return text(value, pointer, member(vec, "len").GetValueAsUnsigned())


def str_(value, _):
    pointer = member(value, "data_ptr").GetValueAsUnsigned()
    return text(value, pointer, member(value, "length").GetValueAsUnsigned())


def places(self):
    """What `update` finds, by one reading of memory."""
    table = self.table()
    inner = table.GetChildMemberWithName("table")
    control = inner.GetChildMemberWithName("ctrl").GetChildAtIndex(0)
    self.new_layout = True
    self.pair_type = table.GetType().GetTemplateArgumentType(0)
    if self.pair_type.IsTypedefType():
        self.pair_type = self.pair_type.GetTypedefedType()
    self.pair_type_size = self.pair_type.GetByteSize()
    self.data_ptr = control.Cast(self.pair_type.GetPointerType())
    count = inner.GetChildMemberWithName("bucket_mask").GetValueAsUnsigned() + 1
    error = lldb.SBError()
    data = self.valobj.GetProcess().ReadMemory(control.GetValueAsUnsigned(), min(count, MAX_PLACES), error) or b""
    self.valid_indices = [index for index, byte in enumerate(data) if byte < 128][:MAX_CHILDREN]
    self.size = len(self.valid_indices)


for name in dir(providers):
    provider = getattr(providers, name)
    if isinstance(provider, type) and hasattr(provider, "num_children"):
        limit(provider)
providers.StdHashMapSyntheticProvider.update = places
for module in (providers, lookup):
    module.SizeSummaryProvider = size
    module.StdStringSummaryProvider = string
    module.StdStrSummaryProvider = str_
