"""Plan a launch for 64 clients on a B300, and read the answer.

python examples/01_plan.py
"""

from __future__ import annotations

import shlex

import planner


def main() -> None:
    plan = planner.plan(hw="b300", target_c=64, context=1024, output_len=1024)
    assert plan.launch is not None
    assert plan.predicted is not None
    assert plan.effective is not None

    rate = plan.predicted.tok_per_s
    print(f"status     {plan.status.value}, {plan.n_candidates:,} candidates")
    print(f"choice     {plan.effective.speculation.value}, q_len {plan.effective.q_len}, TP{plan.effective.tp_size}")
    print(f"tok/s      {rate.value:,.0f} [{rate.low:,.0f}-{rate.high:,.0f}], {rate.provenance.value}")
    if plan.off is not None:
        print(f"off        {plan.off.predicted.tok_per_s.value:,.0f}, P(choice better) {plan.off.p_choice_better:.2f}")
    for limit in plan.binding:
        if limit.plan is not None:
            print(f"limit      {limit.id}: {limit.plan:,.0f} of {limit.known_good:,.0f}")
    for launch in plan.launches:
        print("env       ", *(f"{name}={value}" for name, value in launch.env))
        print("argv      ", shlex.join(launch.argv))

    # What was asked can be impossible. That is an answer, not an exception.
    tight = planner.plan(hw="b300", target_c=64, max_tpot_ms=1)
    assert tight.launch is None
    assert tight.conflict is not None
    print(f"\nat most 1 ms a token: {tight.status.value}")
    print(tight.conflict.text)

    # Bad input is an exception that names every problem at once.
    try:
        planner.plan(hw="b30", target_c=-3)
    except planner.InputError as error:
        print()
        for problem in error.problems:
            print(problem)


if __name__ == "__main__":
    main()
