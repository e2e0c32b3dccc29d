# Completion of `tidegate` for bash, printed by `tidegate completions bash`.
# The program itself lists the words that fit, so that names of the configuration and of its databases are among them.

_tidegate() {
    local program=${1/#\~\//$HOME/} current=$2 position word line kept= index= is_joined=
    local -a words=()
    for position in "${!COMP_WORDS[@]}"; do
        word=${COMP_WORDS[position]}
        # The word up to the cursor. Bash makes words of their own of `=` and `:`, for which it passes no text.
        [[ $position != "$COMP_CWORD" || $word == [=:]* ]] || word=$current
        if [[ $position -gt 1 && ( $is_joined || $word == [=:]* ) ]]; then
            # Bash keeps what is before the part at the cursor.
            [[ $position != "$COMP_CWORD" ]] || kept=${words[${#words[@]} - 1]}
            words[${#words[@]} - 1]+=$word
        else
            words+=("${word/#\~\//$HOME/}")
        fi
        is_joined=
        [[ $word != [=:]* ]] || is_joined=yes
        if [[ $position == "$COMP_CWORD" ]]; then
            index=$((${#words[@]} - 1))
            [[ ! $is_joined ]] || kept=${words[index]}
        fi
    done
    COMPREPLY=()
    while IFS= read -r line || [[ $line ]]; do
        # A name may have characters that the shell would interpret.
        printf -v line %q "${line#"$kept"}"
        COMPREPLY+=("$line")
    done < <(TIDEGATE_COMPLETE=bash _CLAP_COMPLETE_INDEX=$index "$program" -- "${words[@]}" 2>/dev/null)
    # The value or the rest of the path follows.
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

# Versions before 4.4 have no `nosort`.
complete -o nosort -F _tidegate tidegate 2>/dev/null || complete -F _tidegate tidegate
