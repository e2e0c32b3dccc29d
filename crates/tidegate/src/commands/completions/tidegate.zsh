#compdef tidegate
# Completion of `tidegate` for zsh, printed by `tidegate completions zsh`.
# The program itself lists the words that fit, so that names of the configuration and of its databases are among them.

_tidegate() {
    local program=${~${(Q)words[1]}} line
    local -a typed lines complete_words open_words
    typed=("${(@)words/#\~\//$HOME/}")
    # The words have no tilde.
    PREFIX=${PREFIX/#\~\//$HOME/}
    lines=("${(@f)$(TIDEGATE_COMPLETE=zsh _CLAP_COMPLETE_INDEX=$((CURRENT - 1)) "$program" -- "${(@)typed}" 2>/dev/null)}")
    for line in "${(@)lines}"; do
        case $line in
            '') ;;
            # The value or the rest of the path follows.
            *[=/]|*[=/]:*) open_words+=("$line") ;;
            *) complete_words+=("$line") ;;
        esac
    done
    _describe -t values value complete_words -- open_words -S ''
}

# Either a function of a folder in `fpath`, which is called, or a script that is read.
if [[ ${funcstack[1]} == _tidegate ]]; then
    _tidegate "$@"
else
    compdef _tidegate tidegate
fi
