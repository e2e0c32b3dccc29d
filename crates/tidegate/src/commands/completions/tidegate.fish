# Completion of `tidegate` for fish, printed by `tidegate completions fish`.
# The program itself lists the words that fit, so that names of the configuration and of its databases are among them.

function __tidegate_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l lines ($program complete-line --shell fish --index (count $words) -- $words "$current" 2>/dev/null)
    if test "$lines[1]" = :files
        # NAME=PATH and --flag=PATH
        set -l prefix (string match -r '^[^=/.]*=' -- "$current")
        for found in (__fish_complete_path (string replace -r '^[^=/.]*=' '' -- "$current"))
            echo "$prefix$found"
        end
    else if set -q lines[1]
        printf '%s\n' $lines
    end
end

complete -c tidegate -f -a '(__tidegate_complete)'
