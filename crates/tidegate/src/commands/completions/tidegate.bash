# Completion of `tidegate` for bash, printed by `tidegate completions bash`.
# The program itself lists the words that fit, so that names of the configuration and of its databases are among them.

_tidegate() {
    local program=${1/#\~\//$HOME/} current=$2 line
    local -a words=("${COMP_WORDS[@]}")
    # The word up to the cursor. Bash makes words of their own of `=` and `:`, for which it passes no text.
    [[ ${words[COMP_CWORD]} == [=:]* ]] || words[COMP_CWORD]=$current
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            compopt -o default 2>/dev/null
            return
        fi
        # A name may have characters that the shell would interpret.
        printf -v line %q "$line"
        COMPREPLY+=("$line")
    done < <("$program" complete-line --shell bash --index "$COMP_CWORD" -- "${words[@]}" 2>/dev/null)
    # The value follows.
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

# Versions before 4.4 have no `nosort`.
complete -o nosort -F _tidegate tidegate 2>/dev/null || complete -F _tidegate tidegate
