//! Calls of `git` that look, and many that would do more.

use super::*;

fn started_with(text: &str) -> Started {
    started(&text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>())
}

fn looks(text: &str) -> bool {
    started_with(text) != Started::AsAsked
}

/// Calls that look.
const LOOKING: &[&str] = &[
    "status",
    "status --short --branch",
    "status --porcelain=v2 -z",
    "diff",
    "diff --cached --stat HEAD~2 -- src",
    "diff main...topic -U5 -w",
    "log --oneline -5",
    "log -n20 --since=2.weeks --author=Ann --format=%h%x09%s -p -- src/main.rs",
    "log -Sneedle -L1,20:src/main.rs",
    "show HEAD:src/main.rs",
    "show --stat abc123",
    "blame -L10,20 src/main.rs",
    "grep -n -i needle -- src",
    "ls-files --others --exclude-standard",
    "ls-tree -r HEAD",
    "cat-file -p HEAD",
    "branch",
    "branch -a -vv",
    "branch --list feature/*",
    "tag -l v1.*",
    "tag -n3",
    "remote -v",
    "remote get-url origin",
    "stash list",
    "reflog",
    "reflog show HEAD",
    "worktree list --porcelain",
    "rev-parse --abbrev-ref HEAD",
    "rev-parse --short=8 HEAD",
    "describe --tags --always --dirty",
    "merge-base main topic",
    "shortlog -s -n HEAD",
    "for-each-ref --sort=-committerdate --format=%(refname) refs/heads",
    "show-ref --tags",
    "rev-list --count HEAD",
    "version",
    "log -- --output=x",
    "log -n 5",
    "diff -U 3 a..b",
    "grep std::string",
];

#[test]
fn looking_is_free() {
    for call in LOOKING {
        assert!(looks(call), "git {call}");
    }
}

/// Calls that could do more.
const MORE: &[&str] = &[
    // Nothing, and options before the subcommand.
    "",
    "-c core.pager=x log",
    "-C /etc status",
    "--git-dir=/srv/x log",
    "--work-tree=/ status",
    "--exec-path=/tmp/evil log",
    "-p log",
    "--paginate log",
    "--config-env=core.pager=PATH log",
    "--no-pager -c alias.x=!sh x",
    "--attr-source=HEAD diff",
    "--help",
    // Aliases, and subcommands that change something or ask other machines.
    "lg",
    "help log",
    "add .",
    "commit -m x",
    "checkout main",
    "fetch",
    "pull",
    "push",
    "clone ext::sh",
    "ls-remote",
    "ls-remote --upload-pack=touch origin",
    "archive --remote=x --exec=y HEAD",
    "config --list",
    "config core.pager x",
    "gc",
    "bisect run sh",
    "rebase --exec=x main",
    "submodule foreach ls",
    "difftool -x sh",
    "mergetool",
    "interpret-trailers",
    "update-index --refresh",
    "symbolic-ref HEAD refs/heads/x",
    "filter-branch",
    "daemon",
    "upload-pack .",
    "var GIT_EDITOR",
    "web--browse x",
    "stash",
    "stash push",
    "stash show -p",
    "remote add x y",
    "remote show origin",
    "remote update",
    "worktree add x",
    "reflog expire --all",
    "reflog delete HEAD@{0}",
    // Options that write, read elsewhere or start programs, spelt in all ways.
    "diff --output=x",
    "diff --output x",
    "diff --outpu=x",
    "log --output=/home/me/.bashrc -p",
    "show --output=x",
    "diff --no-index /etc/passwd x",
    "diff --no-inde a b",
    "diff --ext-diff",
    "diff --ext",
    "log -p --textconv",
    "show --textconv HEAD:x",
    "diff -O/etc/passwd",
    "diff -Ox",
    "log --show-signature",
    "log --show-sig",
    "log --stdin",
    "rev-list --stdin",
    "rev-list --use-bitmap-index --all",
    "blame --contents /etc/passwd x",
    "blame --contents=/etc/passwd x",
    "blame --textconv x",
    "blame --ignore-revs-file=/etc/passwd x",
    "blame -S/etc/passwd x",
    "grep -O x",
    "grep -Oless x",
    "grep --open-files-in-pager=sh x",
    "grep --open x",
    "grep --no-index x /etc",
    "grep -f/etc/passwd",
    "grep -f /etc/passwd",
    "grep --textconv x",
    "status -v",
    "status --verbose",
    "status --ignore-submodules=none",
    "diff --ignore-submodules=none",
    "diff --submodule=diff",
    "grep --recurse-submodules x",
    "cat-file --textconv HEAD:x",
    "cat-file --filters HEAD:x",
    "cat-file --batch",
    "ls-files -X/etc/passwd",
    "ls-files --exclude-from=/etc/passwd",
    "ls-files --recurse-submodules",
    "rev-parse --parseopt",
    "rev-parse --sq-quote x",
    "version --build-options",
    "shortlog --stdin",
    // A value that swallows the dashes which end the options.
    "log -S -- --output=x",
    "log -n -- --output=x",
    "log -L -- --output=x",
    "log --grep -- --output=x",
    "log --since -- --output=x",
    "diff -U -- --output=x",
    "grep -e -- --open-files-in-pager=sh",
    "grep -A -- -O",
    "blame -L -- --contents=x",
    // Names that would be made or moved.
    "branch new",
    "branch -d old",
    "branch -D old",
    "branch -m a b",
    "branch -f a b",
    "branch --edit-description",
    "branch -u origin/x",
    "branch -- new",
    "tag v1",
    "tag -d v1",
    "tag -a v1",
    "tag -s v1",
    "tag -v v1",
    "tag -- v1",
    "count-objects x",
    // Letters in one word.
    "log -pO/etc/passwd",
    "diff -pw --output=x",
    "status -sbO",
    "log -",
    // Paths out of the repository.
    "diff /etc/passwd x",
    "diff -- /etc/passwd x",
    "diff ../x y",
    "log -- a/../../x",
    "grep x -- ../..",
];

#[test]
fn whatever_could_do_more_is_not_looking() {
    for call in MORE {
        assert!(!looks(call), "git {call}");
    }
}

#[test]
fn drivers_of_the_repository_are_not_asked() {
    let all = |text: &str| match started_with(text) {
        Started::ToLook(arguments) => arguments.join(" "),
        Started::AsAsked => "as asked".to_owned(),
    };
    assert_eq!(
        all("diff a -- b"),
        "diff --no-ext-diff --no-textconv --ignore-submodules=dirty a -- b"
    );
    assert_eq!(all("log -p"), "log --no-ext-diff --no-textconv -p");
    assert_eq!(all("blame a"), "blame --no-textconv a");
    assert_eq!(all("grep a"), "grep --no-textconv a");
    assert_eq!(all("reflog show HEAD"), "reflog show --no-ext-diff --no-textconv HEAD");
    assert_eq!(all("reflog"), "reflog --no-ext-diff --no-textconv");
    assert_eq!(all("stash list -p"), "as asked");
    assert_eq!(all("status"), "status --ignore-submodules=dirty");
}
