"""Playback of a motion: position over time (play, pause, speed), and its controls in the browser."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")
PERIOD = 1.0 / 30.0    # s between pictures


@dataclass
class Playback:
    """The position (s) in a motion; `now` is any steady time in s."""

    duration: float
    position: float = 0.0
    speed: float = 1.0
    playing: bool = False
    loop: bool = False
    _last: float = 0.0

    def play(self, now: float) -> None:
        """Continue; from the end, restart."""
        if self.position >= self.duration:
            self.position = 0.0
        self.playing, self._last = True, now

    def advance(self, now: float) -> float:
        """The position at `now`; at the end, stop or restart."""
        if self.playing:
            self.position += self.speed * (now - self._last)
            self._last = now
            if self.position >= self.duration:
                if self.loop and self.duration > 0.0:
                    self.position %= self.duration
                else:
                    self.position, self.playing = self.duration, False
        return self.position


class Player:
    """Controls in the current container of `server.gui`. draw(t) is called under `lock`."""

    def __init__(self, server: Any, duration: float, draw: Callable[[float], object], lock: Any,
                 loop: bool = False) -> None:
        self.playback, self._draw, self._lock, self._server = Playback(duration, loop=loop), draw, lock, server
        gui = server.gui
        self._button = gui.add_button("Play")
        self._time = gui.add_slider("time (s)", min=0.0, max=max(duration, 1e-3), step=1e-3, initial_value=0.0)
        self._speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
        self._loop = gui.add_checkbox("repeat", loop)
        self._button.on_click(lambda _: self._toggle())
        self._time.on_update(lambda event: None if event.client is None else self.seek(event.target.value))
        self._speed.on_update(lambda event: self._set(speed=float(event.target.value)))
        self._loop.on_update(lambda event: self._set(loop=bool(event.target.value)))
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="player")
        self._thread.start()

    def seek(self, t: float) -> None:
        """Stop at a time."""
        with self._lock:
            self.playback.position, self.playback.playing = t, False
            self._button.label = "Play"
            self._time.value = t
            self._draw(t)

    def pause(self) -> None:
        """Stop at the present position, without drawing."""
        with self._lock:
            self.playback.playing = False
            self._button.label = "Play"

    def play(self) -> None:
        """Resume playing."""
        with self._lock:
            self.playback.play(time.monotonic())
            self._button.label = "Pause"
        self._wake.set()

    def _toggle(self) -> None:
        if self.playback.playing:
            self.seek(self.playback.position)
        else:
            self.play()

    def _set(self, **fields: Any) -> None:
        with self._lock:
            self.playback.advance(time.monotonic())
            for name, value in fields.items():
                setattr(self.playback, name, value)

    def _run(self) -> None:
        while True:
            self._wake.wait()
            begin = time.monotonic()
            with self._lock:
                playing = self.playback.playing
                if playing:
                    t = self.playback.advance(begin)
                if playing and (self._server.get_clients() or not self.playback.playing):    # with clients
                    with self._server.atomic():
                        self._time.value = t
                        self._draw(t)
                    if not self.playback.playing:
                        self._button.label = "Play"
            if not playing:
                self._wake.clear()
                if self.playback.playing:    # started meanwhile
                    self._wake.set()
            time.sleep(max(PERIOD - (time.monotonic() - begin), 0.002))
