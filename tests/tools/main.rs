//! The file tools on a simulated disk: against naive models of what they do, with paths and links
//! made to lead them astray, and with nobody waiting any more.

mod support;
mod finding; // glob and search_text against naive models
mod paths; // no path leads out
mod races; // nor does a link that is swapped in at any moment
mod bounds; // what does not fit is told
mod failing; // disks that fail
mod real; // on the machine itself
mod unwanted; // a call that nobody waits for ends
