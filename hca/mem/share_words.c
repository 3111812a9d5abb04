// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/share_words.h"

static const char *const words[SHARE_REASONS] = {
	[SHARE_MAPPED] = "it is mapped",
	[SHARE_NO_REMOTE] = "it has no remote right",
	[SHARE_UNALIGNED] = "its atomics are at addresses that are no multiples of 8",
	[SHARE_TOO_LARGE] = "it is too large",
	[SHARE_BUDGET] = "the process has as much mapped as it may have",
	[SHARE_AREAS] = "it would take too many of the areas that the kernel allows",
	[SHARE_SLOW] = "to read the attributes of its areas takes too long",
	[SHARE_UNUSED] = "earlier regions that were mapped were hardly used",
	[SHARE_NO_ARENA] = "WEFT_SHARE is never, or the process has no arena",
	[SHARE_NOT_PRIVATE] = "it has a hole, reaches beyond the end of a file, or is of several "
			      "objects",
	[SHARE_RIGHTS] = "it is not readable and writable, or executable",
	[SHARE_FILE] = "it is a private mapping of a file, or of a file that peers cannot map",
	[SHARE_MEMFD] = "it is of a file of huge pages or a device, or, for a region, of one that "
			"can become shorter",
	[SHARE_SYSV] = "it is of a System V segment that may not be looked at",
	[SHARE_SHARED_ANON] = "it is shared and anonymous, and so has no name for peers",
	[SHARE_STACK] = "it is a stack, or the thread's own data",
	[SHARE_HUGETLB] = "it has huge pages of hugetlbfs",
	[SHARE_ATTRIBUTES] = "it has attributes that would be lost (wiped on fork, sealed, a key)",
	[SHARE_USERFAULTFD] = "a userfaultfd of the program watches it",
	[SHARE_THREADS] = "other threads run and cannot be held off (before Linux 5.19: nor once "
			  "it was mapped)",
	[SHARE_PINNED] = "the kernel holds pages of the process (io_uring)",
	[SHARE_EDGE] = "it is not of whole pages, and other data lies there",
	[SHARE_MIXED_ATOMICS] = "another region serves atomics on the same bytes without mapping",
	[SHARE_ARENA_IN_USE] = "what was exported from these addresses before is still mapped",
	[SHARE_QUARANTINE] = "an export of these addresses was revoked, and is still mapped",
	[SHARE_PEER_STOPPED] = "a stopped process is in the middle of using it",
	[SHARE_KERNEL] = "the kernel refuses: limits, memory, or a sealed mapping",
	[SHARE_LEFT_BEHIND] = "it could not be taken back earlier",
	[SHARE_JOURNALED] = "its writes go into a journal",
	[SHARE_ON_DEMAND] = "it is a region on demand, whose addresses may lead elsewhere",
	[SHARE_NO_FD] =
		"no descriptor of its file is open with the rights that are needed, and the "
		"kernel gives one (/proc/self/map_files) to privileged processes alone",
};

const char *share_words(enum share_reason why)
{
	return why < SHARE_REASONS && words[why] ? words[why] : "for a reason without words";
}
