# Completion of pcctl's commands and flags for fish:
#   pcctl completion fish > ~/.config/fish/completions/pcctl.fish
function __pcctl_complete
    set -l request (commandline -opc)
    set -l current (commandline -ct)
    set -l program $request[1]
    set -e request[1]
    if string match -q -- '-*' $current
        set -a request $current
    end
    $program $request --generate-shell-completion 2>/dev/null
end
complete -c pcctl -e
complete -c pcctl -a '(__pcctl_complete)'
