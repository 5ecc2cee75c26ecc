"""Programs for bazel run."""

_SCRIPT = """#!/bin/sh
runfiles=${{RUNFILES_DIR:-$0.runfiles}}/{workspace}
exec {command} "$@"
"""

def launcher(ctx, command, arguments):
    """Returns what a rule must return to have a command of //tools/oci run.

    Args:
      ctx: the rule's context; it needs the attribute _oci.
      command: the command's name.
      arguments: flags, each with a File or a string.
    Returns:
      a DefaultInfo.
    """
    words = [_runfile(ctx.executable._oci), command]
    used = []
    for flag, value in arguments.items():
        words.append("-" + flag)
        if type(value) == "File":
            words.append(_runfile(value))
            used.append(value)
        else:
            words.append(_quote(value))
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(script, _SCRIPT.format(workspace = ctx.workspace_name, command = " ".join(words)), is_executable = True)
    runfiles = ctx.runfiles(used + [ctx.executable._oci])
    runfiles = runfiles.merge(ctx.attr._oci[DefaultInfo].default_runfiles)
    return DefaultInfo(executable = script, runfiles = runfiles)

def _runfile(file):
    return "\"$runfiles\"/" + _quote(file.short_path)

def _quote(text):
    return "'" + text.replace("'", "'\\''") + "'"
