"""The filter's program, run by a small interpreter: which calls of which architecture are told of."""

from __future__ import annotations

import pytest

from realcli_runner import seccomp

X86_64, I386, AARCH64, ARM, RISCV = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028, 0xC00000F3
X32 = 0x40000000


def told(arch: int, number: int, machine: str = "x86_64") -> bool:
    """Whether the kernel would tell of the call (struct seccomp_data: number, architecture)."""
    program = seccomp._program(seccomp._MACHINES[machine][1])
    code = [seccomp._INSTRUCTION.unpack_from(program, at) for at in range(0, len(program), seccomp._INSTRUCTION.size)]
    at, value = 0, 0
    while True:
        operation, yes, no, operand = code[at]
        at += 1
        if operation == 0x20:
            value = {0: number, 4: arch}[operand]
        elif operation == 0x15:
            at += yes if value == operand else no
        else:
            return operand == 0x7FC00000


@pytest.mark.parametrize(
    ("machine", "arch", "numbers"),
    [
        ("x86_64", X86_64, (59, 322, 231, X32 | 520, X32 | 545, X32 | 231)),
        ("x86_64", I386, (11, 358, 252)),
        ("aarch64", AARCH64, (221, 281, 94)),
        ("aarch64", ARM, (11, 387, 248)),
    ],
)
def test_executing_and_ending_are_told_in_every_mode_of_the_machine(machine: str, arch: int, numbers: tuple[int, ...]) -> None:
    assert [number for number in (*range(600), *range(X32, X32 + 600)) if told(arch, number, machine)] == sorted(numbers)


def test_nothing_of_another_architecture_is_told() -> None:
    assert not any(told(RISCV, number) for number in range(600))
