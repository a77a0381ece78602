//! Calls of `git` that only look: known subcommands with known options, each spelt in full. Whatever
//! is not in the tables here, abbreviations included, does not count as looking.
//!
//! This is the first of three lines. The second is what such a call is started with, which takes the
//! repository's configuration its ways to start programs and to reach other machines. The third is the
//! confinement: a call that only looks can write nowhere and execute nothing but `git` itself. That
//! line alone holds against filters (`filter.*.clean`), whose names are the repository's to choose.

/// How `git` is to be started with some arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// It only looks, with all these arguments.
    ToLook(Vec<String>),
    AsAsked,
}

/// What one subcommand takes.
struct Looking {
    name: &'static str,
    /// Put before the given arguments.
    always: &'static [&'static str],
    tables: &'static [&'static Options],
    operands: Operands,
}

struct Options {
    /// None of these takes the argument after it for its value.
    flags: &'static str,
    /// Options whose value follows an equals sign.
    valued: &'static str,
    /// Letters whose value follows: a number, maybe as the next word, or any text at once.
    numbers: &'static [char],
    texts: &'static [char],
}

/// What may stand beside the options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Revisions and paths.
    Any,
    None,
    /// A name alone would be created; in a list it is a pattern.
    InLists,
    /// The first one is this word.
    After(&'static str),
    /// Nothing, or this word first.
    PerhapsAfter(&'static str),
}

const NONE: Options = Options { flags: "", valued: "", numbers: &[], texts: &[] };

/// What shows differences.
const DIFF: Options = Options {
    flags: "\
        -p -u --patch -s --no-patch --stat --shortstat --numstat --name-only --name-status \
        --summary --raw --compact-summary --dirstat -w -b --ignore-all-space \
        --ignore-space-change --ignore-blank-lines --ignore-space-at-eol -M --find-renames \
        --no-renames --full-index --binary --minimal --patience --histogram --word-diff \
        --color-words --no-color --no-prefix --exit-code --quiet -q --check -R -z --relative \
        --function-context -W --no-ext-diff --no-textconv --text -a",
    valued: "\
        --unified --stat --diff-filter --diff-algorithm --find-renames --abbrev --word-diff \
        --color --relative --inter-hunk-context",
    numbers: &['U', 'M'],
    texts: &['S', 'G'],
};

/// What walks through history.
const HISTORY: Options = Options {
    flags: "\
        --oneline --graph --all --branches --tags --remotes --merges --no-merges \
        --first-parent --reverse --decorate --no-decorate --abbrev-commit --no-abbrev-commit \
        --follow --date-order --topo-order --author-date-order --left-right --cherry-pick \
        --boundary --full-history --simplify-merges --simplify-by-decoration -i \
        --regexp-ignore-case -E --extended-regexp -F --fixed-strings --all-match \
        --invert-grep -m --cc --count --no-notes --parents --children",
    valued: "\
        --max-count --skip --since --until --after --before --author --committer --grep \
        --format --pretty --date --decorate --branches --tags --remotes --min-parents \
        --max-parents --diff-merges",
    numbers: &['n'],
    texts: &['L'],
};

const STATUS: Options = Options {
    flags: "\
        -s --short -b --branch --porcelain --long --show-stash -z --ahead-behind \
        --no-ahead-behind --ignored -u --untracked-files --no-renames",
    valued: "--porcelain --untracked-files --ignored",
    numbers: &[],
    texts: &[],
};

const LISTS: Options = Options {
    flags: "\
        -l --list -a --all -r --remotes -v -vv --verbose --show-current --ignore-case -i \
        --no-color --no-column",
    valued: "\
        --contains --no-contains --merged --no-merged --points-at --sort --format --abbrev \
        --color",
    numbers: &[],
    texts: &[],
};

const TAGS: Options = Options {
    flags: "-l --list -i --ignore-case --no-color --no-column -n",
    valued: LISTS.valued,
    numbers: &['n'],
    texts: &[],
};

const REFS: Options = Options {
    flags: "\
        --heads --branches --tags --head -d --dereference --verify -q --quiet --ignore-case \
        --omit-empty",
    valued: "\
        --hash --abbrev --count --sort --format --points-at --merged --no-merged --contains \
        --no-contains",
    numbers: &[],
    texts: &[],
};

const NAMES: Options = Options {
    flags: "\
        --show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir \
        --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository \
        --is-shallow-repository --abbrev-ref --symbolic --symbolic-full-name --short \
        --verify -q --quiet --all --branches --tags --remotes --always --long --exact-match \
        --contains --first-parent --dirty --is-ancestor --fork-point --octopus --independent \
        -a --name-only",
    valued: "--short --abbrev --abbrev-ref --match --exclude --candidates --dirty",
    numbers: &[],
    texts: &[],
};

const FILES: Options = Options {
    flags: "\
        -c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -u \
        --unmerged -k --killed -t -v -z --exclude-standard --full-name --directory \
        --no-empty-directory --eol --error-unmatch --deduplicate -r -l --long --name-only \
        --name-status --object-only --full-tree -p -e",
    valued: "--abbrev --format",
    numbers: &[],
    texts: &[],
};

const TEXT: Options = Options {
    flags: "\
        -n --line-number -i --ignore-case -w --word-regexp -l --files-with-matches \
        --name-only -L --files-without-match -c --count -v --invert-match -h -H -E \
        --extended-regexp -F --fixed-strings -G --basic-regexp -P --perl-regexp -I --cached \
        --untracked --full-name --heading --break -p --show-function -o --only-matching -q \
        --quiet --column --no-color --no-textconv --all-match -z --null",
    valued: "--max-depth --max-count --context --after-context --before-context",
    numbers: &['A', 'B', 'C'],
    texts: &[],
};

const BLAME: Options = Options {
    flags: "\
        -w -M -C -e --show-email -f --show-name -n --show-number -s -t -l --porcelain -p \
        --line-porcelain --incremental --root -c --first-parent --no-textconv",
    valued: "--since --date --abbrev --ignore-rev",
    numbers: &[],
    texts: &['L'],
};

const AUTHORS: Options = Options {
    flags: "-s --summary -n --numbered -e --email -c --committer",
    valued: "--group",
    numbers: &[],
    texts: &[],
};

/// What keeps drivers of the repository from being asked how its files differ.
const PLAIN: &[&str] = &["--no-ext-diff", "--no-textconv"];

/// What keeps `git` from being started in the work trees of submodules, which have a configuration of
/// their own. As an option, since the repository's may say otherwise for each of them.
const NOT_BELOW: &str = "--ignore-submodules=dirty";

const PLAIN_HERE: &[&str] = &["--no-ext-diff", "--no-textconv", NOT_BELOW];

const SUBCOMMANDS: &[Looking] = &[
    looking("status", &[NOT_BELOW], &[&STATUS], Operands::Any),
    looking(
        "diff",
        PLAIN_HERE,
        &[&DIFF, &Options { flags: "--cached --staged --merge-base", ..NONE }],
        Operands::Any,
    ),
    looking("log", PLAIN, &[&DIFF, &HISTORY], Operands::Any),
    looking("show", PLAIN, &[&DIFF, &HISTORY], Operands::Any),
    looking("reflog", PLAIN, &[&DIFF, &HISTORY], Operands::PerhapsAfter("show")),
    looking("stash", &[], &[&HISTORY], Operands::After("list")),
    looking("rev-list", &[], &[&HISTORY], Operands::Any),
    looking("shortlog", &[], &[&AUTHORS, &HISTORY], Operands::Any),
    looking("blame", &["--no-textconv"], &[&BLAME], Operands::Any),
    looking("grep", &["--no-textconv"], &[&TEXT], Operands::Any),
    looking("ls-files", &[], &[&FILES], Operands::Any),
    looking("ls-tree", &[], &[&FILES], Operands::Any),
    looking("cat-file", &[], &[&Options { flags: "-p -t -s -e", ..NONE }], Operands::Any),
    looking("branch", &[], &[&LISTS], Operands::InLists),
    looking("tag", &[], &[&TAGS], Operands::InLists),
    looking(
        "remote",
        &[],
        &[&Options { flags: "-v --verbose", ..NONE }],
        Operands::PerhapsAfter("get-url"),
    ),
    looking(
        "worktree",
        &[],
        &[&Options { flags: "--porcelain -v -z", ..NONE }],
        Operands::After("list"),
    ),
    looking("show-ref", &[], &[&REFS], Operands::Any),
    looking("for-each-ref", &[], &[&REFS], Operands::Any),
    looking("rev-parse", &[], &[&NAMES], Operands::Any),
    looking("describe", &[], &[&NAMES], Operands::Any),
    looking("name-rev", &[], &[&NAMES], Operands::Any),
    looking("merge-base", &[], &[&NAMES], Operands::Any),
    looking("count-objects", &[], &[&Options { flags: "-v -H", ..NONE }], Operands::None),
    looking("version", &[], &[&NONE], Operands::None),
];

const fn looking(
    name: &'static str,
    always: &'static [&'static str],
    tables: &'static [&'static Options],
    operands: Operands,
) -> Looking {
    Looking { name, always, tables, operands }
}

/// Decides whether a call only looks.
pub fn started(arguments: &[String]) -> Started {
    let looks = || {
        let (subcommand, rest) = arguments.split_first()?;
        let looking = SUBCOMMANDS.iter().find(|looking| looking.name == subcommand)?;
        looking.takes_all(rest).then_some((looking, rest))
    };
    match looks() {
        None => Started::AsAsked,
        Some((looking, rest)) => {
            // `reflog show` takes options after its second word only.
            let (word, rest) = match looking.operands {
                Operands::After(_) | Operands::PerhapsAfter(_) => rest.split_at(rest.len().min(1)),
                Operands::Any | Operands::None | Operands::InLists => rest.split_at(0),
            };
            let always = looking.always.iter().map(|word| (*word).to_owned());
            let name = std::iter::once(looking.name.to_owned());
            let words = name.chain(word.iter().cloned()).chain(always).chain(rest.iter().cloned());
            Started::ToLook(words.collect())
        }
    }
}

impl Looking {
    /// Whether all arguments after the subcommand are known.
    fn takes_all(&self, rest: &[String]) -> bool {
        // What is after the two dashes is a path however it begins. No option takes the word after it
        // but for a number, so the dashes are never the value of one.
        let end = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
        let (before, paths) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
        let is_option = |word: &&String| word.starts_with('-');
        let mut options = before.iter().enumerate().filter(|(_, word)| is_option(word));
        if !options.all(|(index, option)| self.takes(option, before.get(index + 1))) {
            return false;
        }
        let is_list = before.iter().any(|word| word == "-l" || word == "--list");
        let operands = || before.iter().filter(|word| !is_option(word)).chain(paths);
        let begins_with = |word: &str| rest.first().is_some_and(|first| first == word);
        let fits = match self.operands {
            Operands::Any => true,
            Operands::None => operands().count() == 0,
            Operands::InLists => operands().count() == 0 || is_list,
            Operands::After(word) => begins_with(word),
            Operands::PerhapsAfter(word) => operands().count() == 0 || begins_with(word),
        };
        fits && operands().all(|operand| !leads_out(operand))
    }

    fn takes(&self, option: &str, next: Option<&String>) -> bool {
        self.tables.iter().any(|table| table.takes(option, next.map_or("", String::as_str)))
    }
}

/// Whether an operand could be a path out of the repository: `diff` compares such files, too.
fn leads_out(operand: &str) -> bool {
    operand.starts_with('/') || operand.split('/').any(|step| step == "..")
}

impl Options {
    fn takes(&self, option: &str, next: &str) -> bool {
        let has =
            |words: &str, word: &str| words.split_ascii_whitespace().any(|known| known == word);
        if has(self.flags, option) {
            return true;
        }
        if let Some((name, _)) = option.split_once('=')
            && name.starts_with("--")
        {
            return has(self.valued, name);
        }
        let mut letters = option.strip_prefix('-').unwrap_or_default().chars();
        let (Some(letter), value) = (letters.next(), letters.as_str()) else { return false };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // `-5` is `-n5`.
        let is_count = self.numbers.contains(&'n') && is_number(&option[1..]);
        let number = if value.is_empty() { next } else { value };
        is_count
            || self.numbers.contains(&letter) && is_number(number)
            || self.texts.contains(&letter) && !value.is_empty()
    }
}

#[cfg(test)]
#[path = "git_tests.rs"]
mod tests;
