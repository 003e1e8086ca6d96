"""The table of diagnostics: what it shows of statuses, and that it shows those of a running node."""

import signal

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from harness import NodeProcess, Peer

import rbd_ros as rbd
from rbd_ros.nodes.diagnostics_view import table


def status(name, level=DiagnosticStatus.OK, message="active", **values):
    return DiagnosticStatus(name=name, level=level, message=message,
                            values=[KeyValue(key=key, value=value) for key, value in values.items()])


def test_rows_and_notes():
    lines = table([
        (status("/z/server", DiagnosticStatus.WARN, "inactive"), 0.2),
        (status("/feedforward", rate_hz="499.98", latency_p50_us="136.25", latency_p99_us="248", deadline_misses="3",
                rejected_total="2", rejected_wrong_size="2", rejected_non_finite="0", saturated="0", rate_limited="7",
                timeouts="1"), 0.5),
        (status("/gone", DiagnosticStatus.ERROR, "stopped"), 12.0)])
    assert lines[0].split() == ["node", "status", "Hz", "p50", "µs", "p99", "µs", "misses", "rejected", "saturated",
                                "rate", "limited", "timeouts"]
    assert lines[1].split() == ["/feedforward", "ok:", "active", "500.0", "136.2", "248", "3", "2", "0", "7", "1"]
    assert lines[2].split()[:9] == ["/gone", "SILENT", "for", "12", "s", "(was", "ERROR:", "stopped)", "–"]
    assert lines[3].split()[:4] == ["/z/server", "WARN:", "inactive", "–"]
    assert lines[4:] == ["/feedforward rejected: 2 wrong size"]
    assert {len(line) for line in lines[:4]} == {len(lines[0])}    # columns stand below each other


def test_a_long_status_stands_below_the_table():
    message = "configuration failed: joint 'j2' moves no mass: the mass matrix is singular"
    lines = table([(status("/feedforward", DiagnosticStatus.ERROR, message), 0.5), (status("/simulator"), 0.5)])
    assert lines[1].startswith("/feedforward  ERROR: configuration failed") and message not in lines[1]
    assert max(map(len, lines[:3])) < 125
    assert lines[3:] == [f"/feedforward ERROR: {message}"]


def test_a_running_node_appears(tmp_path, private_domain):
    node = NodeProcess(tmp_path, "feedforward", robot_description_file=str(rbd.sample_path("two_link")))
    view = NodeProcess(tmp_path, "diagnostics_view")
    try:
        with Peer() as peer:
            peer.spin_until(lambda: "/feedforward" in view.output() and "active, waiting" in view.output(), "row",
                            lambda: peer.send_state(["shoulder", "elbow"], [0.1]))
            peer.spin_until(lambda: "wrong size" in view.output(), "rejection",
                            lambda: peer.send_state(["shoulder", "elbow"], [0.1]))
        assert view.end(signal.SIGINT) == 0
    finally:
        view.kill()
        node.kill()
