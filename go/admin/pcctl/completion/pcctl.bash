# Completion of pcctl's commands and flags for bash 3.2 and later:
#   source <(pcctl completion bash)
# Words are never evaluated. What pcctl doesn't complete, file names do.
_pcctl() {
    local current=${COMP_WORDS[COMP_CWORD]} word suggestion
    local -a request
    local n=0 glue=
    # bash splits words at '=' and ':'; put them together again.
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [[ $word =~ ^[=:]+$ && $n -gt 0 ]]; then
            request[n-1]+=$word
            glue=1
        elif [[ -n $glue ]]; then
            request[n-1]+=$word
            glue=
        else
            request[n]=$word
            n=$((n + 1))
        fi
    done
    COMPREPLY=()
    [[ -z $glue ]] || return 0
    if [[ $current == -* ]]; then
        request[n]=$current
        n=$((n + 1))
    fi
    while IFS=$'\t' read -r suggestion _; do
        [[ $suggestion == "$current"* ]] && COMPREPLY+=("$suggestion")
    done < <("${COMP_WORDS[0]/#\~/$HOME}" ${request[@]+"${request[@]}"} --generate-shell-completion 2>/dev/null)
    return 0
}
complete -o bashdefault -o default -F _pcctl pcctl
