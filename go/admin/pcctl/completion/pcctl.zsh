#compdef pcctl
# Completion of pcctl's commands and flags for zsh:
#   source <(pcctl completion zsh)
# or save it as _pcctl in a folder of $fpath. What pcctl doesn't complete,
# file names do.
_pcctl() {
    local -a request suggestions
    local line
    request=("${(@Q)words[2,CURRENT-1]}")
    [[ ${words[CURRENT]} == -* ]] && request+=("${(Q)words[CURRENT]}")
    for line in "${(@f)$(${~words[1]} "${request[@]}" --generate-shell-completion 2>/dev/null)}"; do
        [[ -n $line ]] && suggestions+=("${line%%$'\t'*}:${line#*$'\t'}")
    done
    if (( ${#suggestions} )); then
        _describe pcctl suggestions
    else
        _files
    fi
}
if [[ ${funcstack[1]} == _pcctl ]]; then
    _pcctl "$@"
else
    compdef _pcctl pcctl
fi
