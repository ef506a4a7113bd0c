"""Tests connection slots."""

from __future__ import annotations

from ophion.rpc.transport.connection_slots import BUSY, UNAUTHENTICATED, WITHOUT_REQUEST, ConnectionSlots


class SlotHolder:
    def __init__(self, idle: float) -> None:
        self.idle = idle
        self.is_gone = False

    def idleness(self) -> float:
        return self.idle

    def evict(self) -> None:
        self.is_gone = True


def filled(*idle: float) -> tuple[ConnectionSlots[SlotHolder], list[SlotHolder]]:
    places: ConnectionSlots[SlotHolder] = ConnectionSlots("test", len(idle))
    guests = [SlotHolder(seconds) for seconds in idle]
    assert all(places.admit(guest) for guest in guests)
    return places, guests


def test_the_idlest_is_evicted() -> None:
    places, guests = filled(3, 60, 0, 59)
    assert places.admit(SlotHolder(WITHOUT_REQUEST))
    assert [guest.is_gone for guest in guests] == [False, True, False, False]
    assert len(places) == 4


def test_who_never_asked_goes_before_who_is_only_quiet() -> None:
    places, guests = filled(500, WITHOUT_REQUEST, 0)
    assert places.admit(SlotHolder(0))
    assert guests[1].is_gone


def test_who_was_not_let_in_goes_before_who_has_just_come() -> None:
    places, guests = filled(0, WITHOUT_REQUEST + 3600, UNAUTHENTICATED)
    assert places.admit(SlotHolder(0))
    assert guests[2].is_gone


def test_of_equals_the_oldest_goes() -> None:
    places, guests = filled(WITHOUT_REQUEST, WITHOUT_REQUEST, WITHOUT_REQUEST)
    places.admit(SlotHolder(0))
    assert [guest.is_gone for guest in guests] == [True, False, False]


def test_a_waiting_client_is_not_evicted() -> None:
    places, guests = filled(BUSY, BUSY)
    assert not places.admit(SlotHolder(0))
    assert not any(guest.is_gone for guest in guests)
    assert places.refused == 1


def test_a_chosen_one_that_woke_up_stays() -> None:
    places, guests = filled(*[100.0] * 32)
    places.admit(SlotHolder(BUSY))
    for guest in guests[1:16]:
        guest.idle = 0
    for _ in range(10):
        places.admit(SlotHolder(BUSY))
    assert not any(guest.is_gone for guest in guests[1:16])
    assert sum(guest.is_gone for guest in guests) == 11


def test_a_slot_is_free_again_after_a_connection_closes() -> None:
    places, guests = filled(0, 0)
    places.leave(guests[0])
    places.leave(guests[0])
    assert places.admit(SlotHolder(0))
    assert not guests[1].is_gone
    assert len(list(places)) == 2
