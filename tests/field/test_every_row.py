"""Field reports A and D to P, row by row, and the tests that hold what each asks for.

A test names its row in its name or in its docstring; this table is held against the files.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REQUESTS, CONTEXTS = "tests/field/test_requests.py", "tests/field/test_contexts.py"
COMPACTOR, STOPS = "tests/engine/test_compactor.py", "tests/engine/test_compactor_stops.py"
EFFECTS, COMMANDS = "tests/field/test_effects.py", "tests/field/test_commands.py"
PATHS, PRIVACY = "tests/field/test_paths.py", "tests/field/test_privacy.py"
JUDGED, RETURNS = f"{COMMANDS}::test_every_part_of_a_line_is_judged", f"{COMMANDS}::test_a_command_returns_although"
TALKING, TERMINALS = "tests/field/test_talking.py", "tests/field/test_terminals.py"
KEYS, TMUX = "tests/repl/test_keys.py", "tests/repl/test_tmux.py"
PLANS, DECISIONS = "tests/context/test_compaction.py", "tests/context/test_decision.py"

LOGS, ORDER, SIZE = "tests/field/test_unreadable_logs.py", "tests/field/test_order.py", "tests/field/test_size.py"
VERSIONS = "tests/field/test_versions.py"
LINES, INDEX = "tests/field/test_one_line_per_record.py", "tests/app/test_index_is_a_cache.py"

ROWS = {
    "A1": f"{LOGS}::test_a1_garbage_over_the_last_bytes",
    "A2": f"{LOGS}::test_a2_nul_bytes_at_the_end",
    "A3": f"{LOGS}::test_a3_nul_bytes_a_broken_sidecar_and_a_stale_lock",
    "A6": f"{LINES}::test_a6_any_output_of_a_tool_is_one_line",
    "A7": f"{LINES}::test_a7_twenty_megabytes_of_such_text",
    "A8": f"{LINES}::test_a36_each_separator_of_splitlines",
    "A9": f"{LINES}::test_a9_a_hook_that_says_such_text {LINES}::test_a9_through_a_real_hook",
    "A11": f"{ORDER}::test_a11_a_kill_between_call_and_result",
    "A13": f"{LOGS}::test_a13_a_byte_order_mark_in_one_of_twenty",
    "A14": f"{LOGS}::test_a14_a_doubled_and_a_missing_number",
    "A15": f"{LOGS}::test_a15_a_newer_and_an_older_writer_in_one_log {VERSIONS}::test_a15_records_of_two_versions",
    "A16": f"{LOGS}::test_a16_two_writers_tear_one_line",
    "A17": f"{INDEX}::test_ls_prints_the_same_rows",
    "A19": f"{ORDER}::test_a19_little_memory_and_a_kill_inside_a_tool",
    "A20": f"{LOGS}::test_a20_the_last_page_is_gone",
    "A22": f"{ORDER}::test_a22_a_line_that_stands_there_twice_hides_nothing",
    "A23": f"{ORDER}::test_a23_only_what_is_in_the_file_is_named",
    "A24": f"{ORDER}::test_a24_nothing_dangles_in_a_real_session",
    "A25": f"{ORDER}::test_a25_a28_a_hole_is_bridged_and_told",
    "A28": f"{ORDER}::test_a25_a28_a_hole_is_bridged_and_told",
    "A29": f"{ORDER}::test_a29_of_two_tips_one_is_live_and_the_other_is_named",
    "A30": f"{LOGS}::test_a30_nul_bytes_in_the_middle",
    "A31": f"{LOGS}::test_a31_an_empty_log_beside_good_ones",
    "A32": f"{ORDER}::test_a32_two_calls_with_one_id",
    "A34": f"{INDEX}::test_ls_prints_the_same_rows",
    "A35": f"{INDEX}::test_a_home_that_cannot_be_written",
    "A36": f"{LINES}::test_a36_each_separator_of_splitlines",
    "D72": f"{REQUESTS}::test_d72_d75_killed_inside_a_tool_and_two_turns_on",
    "D75": f"{REQUESTS}::test_d72_d75_killed_inside_a_tool_and_two_turns_on",
    "D76": "tests/e2e/test_context.py::test_an_odd_reply_does_not_poison_the_next_request",
    "D77": "tests/e2e/test_fork.py::test_d77_fork_undo_resume_show_what_is_sent",
    "D78": "tests/e2e/test_fork.py::test_d78_at_each_turn_the_request_begins_as_the_parents",
    "D80": f"{REQUESTS}::test_d80_d91_interrupted_between_parallel_calls",
    "D81": f"{REQUESTS}::test_d81_two_messages_of_the_users_in_a_row_are_one_where_the_profile_says_so",
    "D82": "tests/tokens/test_meter.py::test_it_is_the_same_right_after_a_resume",
    "D83": f"{CONTEXTS}::test_d83_d84_d86_a_log_that_is_cut_after_any_byte",
    "D84": f"{CONTEXTS}::test_d83_d84_d86_a_log_that_is_cut_after_any_byte",
    "D86": f"{CONTEXTS}::test_d83_d84_d86_a_log_that_is_cut_after_any_byte",
    "D87": f"{REQUESTS}::test_d87_d88_reasoning_is_kept_in_the_log_and_never_sent_back_changed",
    "D88": f"{REQUESTS}::test_d87_d88_reasoning_is_kept_in_the_log_and_never_sent_back_changed",
    "D91": f"{REQUESTS}::test_d80_d91_interrupted_between_parallel_calls",
    "D92": f"{CONTEXTS}::test_d92_no_damage_makes_a_request_that_is_refused",
    "D93": "tests/e2e/test_commands.py::test_d93_a_command_of_the_users_joins_the_next_request_and_the_replay",
    "D94": "tests/e2e/test_replay.py::test_approvals_interruptions_and_a_resumed_session_replay_as_they_were_seen",
    "D95": f"{REQUESTS}::test_d95_a_result_without_a_call_is_never_sent_as_one",
    "D96": "tests/engine/test_turn.py::test_a_session_cut_after_any_event_reopens_with_one_result_for_each_call",
    "D97": "tests/e2e/test_headless.py::test_p_resumes_by_id_prefix_suffix_title_and_last",
    "D98": f"{REQUESTS}::test_d98_d99_a_call_that_is_still_open_has_a_result_all_the_same",
    "D99": f"{REQUESTS}::test_d98_d99_a_call_that_is_still_open_has_a_result_all_the_same",
    "D100": "tests/engine/test_crashes.py::test_a_result_that_could_not_be_written_is_held_and_written_later",
    "E103": f"{EFFECTS}::test_e103_e104_e106_told_once_and_never_run_again",
    "E104": f"{EFFECTS}::test_e103_e104_e106_told_once_and_never_run_again",
    "E105": f"{EFFECTS}::e105_is_told_once",
    "E106": f"{EFFECTS}::test_e103_e104_e106_told_once_and_never_run_again",
    "F107": f"{SIZE}::test_f107_f115_memory_does_not_grow_with_the_log {SIZE}::test_f107_f115_a_resume_of_a_long_log",
    "F108": f"{SIZE}::test_f108_a_text_is_kept_once_and_what_takes_room_is_told",
    "F109": f"{SIZE}::test_f109_a_fork_costs_nothing_of_the_log {SIZE}::test_f109_nor_of_its_segments",
    "F111": f"{SIZE}::test_f111_the_first_page_reads_no_more_than_it_shows",
    "F112": f"{SIZE}::test_f112_a_session_is_little_more_than_its_text",
    "F113": f"{SIZE}::test_f113_opening_costs_little_beside_parsing",
    "F114": f"{SIZE}::test_f114_a_result_of_megabytes",
    "F115": f"{SIZE}::test_f107_f115_memory_does_not_grow_with_the_log {SIZE}::test_f107_f115_a_resume_of_a_long_log",
    "F116": f"{SIZE}::test_f116_no_event_for_each_piece_of_a_stream",
    "F119": f"{SIZE}::test_f119_a_list_costs_what_is_shown",
    "G120": f"{COMPACTOR}::test_it_takes_little_and_pays_for_each_try",
    "G122": f"{COMPACTOR}::test_a_bigger_model_goes_on_without_a_compaction",
    "G124": f"{COMPACTOR}::test_after_an_undo_it_waits_until_there_is_more",
    "G125": f"{COMPACTOR}::test_a_smaller_model_compacts_a_history_twice_its_window",
    "G126": f"{COMPACTOR}::test_a_long_session_compacts_itself_and_goes_on",
    "G127": "tests/tokens/test_overflow.py::test_the_second_refusal_ends_the_turn_with_ways_on",
    "G128": f"{PLANS}::test_what_is_planned_and_filled_is_valid_shorter_and_leaves_room",
    "G129": f"{STOPS}::test_the_todo_list_is_still_in_the_request",
    "G130": f"{CONTEXTS}::test_g130_what_became_of_every_event_is_told",
    "G131": f"{COMPACTOR}::test_undo_brings_the_very_request_back_and_is_left_alone",
    "G133": f"{STOPS}::test_what_was_queued_survives_and_joins",
    "G134": f"{STOPS}::test_a_resume_that_compacts_has_stored_its_prompt_first",
    "G135": f"{COMPACTOR}::test_a_long_session_compacts_itself_and_goes_on",
    "G136": f"{COMPACTOR}::test_a_long_session_compacts_itself_and_goes_on",
    "H139": "tests/app/test_surroundings.py::test_a_day_later_the_start_is_the_same_and_the_date_is_appended",
    "H140": f"{REQUESTS}::test_h140_the_bytes_of_a_request_are_stable",
    "H141": "tests/tokens/test_counter.py::test_what_other_counters_fall_over",
    "H143": "tests/tokens/test_ranks.py::test_it_is_built_without_network_and_without_tiktokens_loader",
    "H144": "tests/tokens/test_counter.py::test_a_run_without_breaks_takes_no_more_than_its_length",
    "H145": "tests/tokens/test_counter.py::test_a_run_without_breaks_takes_no_more_than_its_length",
    "I146": "tests/context/test_images.py::test_field_i146_twenty_screenshots_stay_within_the_limits_of_one_request",
    "I148": "tests/field/test_pictures.py::test_i148_a_page_named_png_bricks_no_session",
    "I149": "tests/e2e/test_images.py::test_field_i149_i151_an_image_that_a_provider_refuses_is_dropped_and_told",
    "I150": "tests/field/test_pictures.py::test_i150_the_bytes_of_a_picture_on_stdout_stay_out_of_the_context",
    "I151": "tests/workspace/test_images.py::"
    "test_field_i149_i151_a_damaged_image_is_refused_here_and_not_by_a_provider",
    "J152": f"{TALKING}::test_j152_what_waits_is_still_there_after_an_interruption",
    "J153": f"{TALKING}::test_j153_a_message_during_any_phase_is_there_once_and_stops_nothing",
    "J154": f"{TALKING}::test_j154_nothing_falls_out_of_a_long_queue",
    "J155": "tests/e2e/test_commands.py::"
    "test_j155_a_queued_text_waits_while_another_session_is_open_and_clear_keeps_the_old",
    "J157": f"{TALKING}::test_j157_an_interrupted_call_is_told_as_one",
    "J159": f"{TALKING}::test_j159_after_an_interruption_nothing_goes_on_by_itself",
    "J160": f"{TALKING}::test_j160_twenty_interruptions_at_random_moments",
    "K161": f"{KEYS}::test_large_pastes_and_one_without_an_end",
    "K164": f"{KEYS}::test_large_pastes_and_one_without_an_end",
    "K165": f"{TMUX}::test_k165_k166_twenty_resizes_while_text_streams_lose_and_double_nothing",
    "K166": f"{TMUX}::test_k165_k166_twenty_resizes_while_text_streams_lose_and_double_nothing",
    "K167": "tests/repl/test_pty.py::test_a_long_answer_costs_less_than_three_times_its_bytes",
    "K168": f"{TERMINALS}::test_k168_a_replay_wraps_at_the_width_of_today",
    "K170": f"{TERMINALS}::test_k170_into_a_file_or_a_pipe_goes_plain_text",
    "K171": f"{KEYS}::test_ways_out",
    "K172": f"{TERMINALS}::test_k172_a_paste_of_5000_lines_is_stored_whole",
    "K173": f"{TERMINALS}::test_k173_controls_of_tools_models_and_titles_stay_out_of_the_live_view",
    "K174": f"{TERMINALS}::test_k174_k175_half_characters_stop_nothing",
    "K175": f"{TERMINALS}::test_k174_k175_half_characters_stop_nothing",
    "L176": f"{RETURNS}_something_goes_on",
    "L177": f"{RETURNS}_something_goes_on",
    "L179": f"{COMMANDS}::test_l179_l181_what_waits_for_input_gets_none",
    "L181": f"{COMMANDS}::test_l179_l181_what_waits_for_input_gets_none",
    "L182": f"{COMMANDS}::test_l182_after_a_cancellation_nothing_is_left",
    "L183": f"{COMMANDS}::test_l183_no_interactive_shell",
    "L184": "tests/e2e/test_jobs.py::test_l184_e103_no_process_of_the_session_outlives_it_and_none_is_started_again",
    "M185": "tests/tools/test_edit.py::test_however_a_file_is_written_it_stays_so",
    "M187": "tests/tools/test_edit.py::test_read_grep_and_edit_agree_on_a_file",
    "M188": "tests/tools/test_edit.py::test_m188_a_near_miss_is_shown",
    "M190": "tests/e2e/test_rewind.py::test_m190_conflicts_are_listed_and_the_exit_code_says_so",
    "M191": "tests/e2e/test_rewind.py::test_back_and_forth",
    "M192": "tests/workspace/test_snapshot.py::test_m192_a_file_that_came_back_goes_again",
    "N193": f"{PATHS}::test_n193_n194_n195_no_two_projects_are_one",
    "N194": f"{PATHS}::test_n193_n194_n195_no_two_projects_are_one",
    "N195": f"{PATHS}::test_n193_n194_n195_no_two_projects_are_one",
    "N197": f"{PATHS}::test_n197_the_spelling_of_a_path_never_changes",
    "N198": f"{PATHS}::test_n198_a_name_that_two_sessions_have_is_asked_about",
    "N199": f"{PATHS}::test_n199_last_is_the_first_row",
    "N200": "tests/e2e/test_workspaces.py::test_n200_never_the_current_directory",
    "N201": f"{COMMANDS}::test_n201_a_directory_that_was_left_is_entered_again",
    "N204": "tests/cli/test_keeping.py::test_gc_says_what_it_would_do_and_does_it_only_then",
    "N205": "tests/cli/test_keeping.py::test_rm_asks_where_the_workspace_holds_something_new",
    "O206": f"{PRIVACY}::test_o206_what_a_command_or_a_tool_reads_is_not_kept",
    "O208": f"{PRIVACY}::test_o208_o209_o217_nobody_else_can_read_a_session",
    "O209": f"{PRIVACY}::test_o208_o209_o217_nobody_else_can_read_a_session",
    "O210": JUDGED,
    "O212": JUDGED,
    "O213": JUDGED,
    "O215": JUDGED,
    "O216": JUDGED,
    "O217": f"{PRIVACY}::test_o208_o209_o217_nobody_else_can_read_a_session",
    "P218": "tests/field/test_headless.py::test_p218_p219_four_ways_to_fail_have_four_codes",
    "P219": "tests/field/test_headless.py::test_p218_p219_four_ways_to_fail_have_four_codes",
}
"""The rows of the reports by number; of several tests, each shows a part of the check."""


def named(place: str) -> str:
    """Return the name, the docstring and the cases of a test."""
    path, _, name = place.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.name == name]
    assert found, f"{place} is not there"
    cases = " ".join(map(ast.unparse, found[0].decorator_list))
    return f"{name} {ast.get_docstring(found[0]) or ''} {cases}"


@pytest.mark.parametrize("row", ROWS)
def test_the_test_of_a_row_names_it(row: str) -> None:
    for place in ROWS[row].split():
        assert re.search(rf"(?:\b|_){row}(?:\b|_)", named(place), re.IGNORECASE), f"{place} does not name {row}"
