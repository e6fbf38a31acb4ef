#!/usr/bin/env python3
"""Perfetto's own messages read the trace: nothing in it is unknown to them, every slice that begins
also ends, in time, and the innermost ones add up to what the profile has."""

import collections
import sys

from exports import find_tool, for_each_profile

sys.path.insert(0, str(find_tool("python")))
from google.protobuf import unknown_fields  # noqa: E402
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages  # noqa: E402

EVENT = messages.TrackEvent


def unknown(message):
    """How much of it the format does not know."""
    count = len(unknown_fields.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            several = field.is_repeated if hasattr(field, "is_repeated") else field.label == 3
            count += sum(unknown(each) for each in (value if several else [value]))
    return count


def interned(trace):
    names = {"event_names": {}, "debug_annotation_names": {}, "source_locations": {}}
    for packet in trace.packet:
        for kind, known in names.items():
            for item in getattr(packet.interned_data, kind):
                known[item.iid] = item
    return names


def threads(trace):
    """{track: (pid, tid)}"""
    return {packet.track_descriptor.uuid: (packet.track_descriptor.thread.pid,
                                           packet.track_descriptor.thread.tid)
            for packet in trace.packet if packet.track_descriptor.HasField("thread")}


def check_slices(trace, names):
    """What each track's slices say of themselves, by name of the detail; and all names."""
    depth, last = collections.Counter(), collections.Counter()
    details, shown = collections.defaultdict(collections.Counter), set()
    for packet in trace.packet:
        event = packet.track_event
        if event.type not in (EVENT.TYPE_SLICE_BEGIN, EVENT.TYPE_SLICE_END):
            continue
        track = event.track_uuid
        assert packet.timestamp >= last[track], (packet.timestamp, last[track])
        last[track] = packet.timestamp
        depth[track] += 1 if event.type == EVENT.TYPE_SLICE_BEGIN else -1
        assert depth[track] >= 0
        if event.type == EVENT.TYPE_SLICE_BEGIN:
            shown.add(names["event_names"][event.name_iid].name)
            location = names["source_locations"][event.source_location_iid]
            assert location.function_name == names["event_names"][event.name_iid].name
        for detail in event.debug_annotations:
            name = names["debug_annotation_names"][detail.name_iid].name
            details[track][name] += detail.uint_value
    assert not any(depth.values())
    return details, shown


def check_memory(export, trace):
    dumps = [packet.profile_packet for packet in trace.packet
             if packet.HasField("profile_packet")]
    stacks = {stack.iid: stack for dump in dumps for stack in dump.callstacks}
    frames = {frame.iid for dump in dumps for frame in dump.frames}
    total = live = 0
    for dump in dumps:
        for process in dump.process_dumps:
            for sample in process.samples:
                assert set(stacks[sample.callstack_id].frame_ids) <= frames
                total += sample.self_allocated
                live += sample.self_allocated - sample.self_freed
    assert abs(total - export.bytes()) <= len(stacks)
    assert abs(live - export.live()) <= len(stacks)
    assert [dump.continued for dump in dumps] == [True] * (len(dumps) - 1) + [False] * bool(dumps)


def check(export):
    trace = messages.Trace()
    trace.ParseFromString(export.path.read_bytes())
    assert unknown(trace) == 0
    details, shown = check_slices(trace, interned(trace))
    assert export.functions() <= shown, export.functions() - shown
    of_threads = {thread: details[track] for track, thread in threads(trace).items()}
    for thread, sums in export.threads().items():
        got = of_threads[thread]
        cpu = sum(got[kind + "_us"] for kind in ("python", "native", "kernel"))
        assert (cpu, got["idle_us"]) == (sums["cpu"], sums["idle"]), (thread, got)
        waits = set(got) - {"samples", "python_us", "native_us", "kernel_us", "idle_us"}
        assert sum(got[kind] for kind in waits) == sums["wait"], (thread, got)
    check_memory(export, trace)


if __name__ == "__main__":
    sys.exit(for_each_profile(".perfetto-trace", check))
