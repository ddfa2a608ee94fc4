/* Hosts of the scenarios: network namespaces joined by a bridge, with folders of their own, in
 * namespaces that no other process sees and that end with this process. */
#pragma once

#include <stdbool.h>

/* Make `n` of them and go there. NULL, or why this is not possible here. */
const char *hosts_open(int n);
void hosts_close(void);

/* This process goes to one of them. */
void hosts_enter(int host);
/* The link of one: pulled out, or there. */
bool hosts_link(int host, bool up);
/* So many of a hundred packets that come to one are lost. */
bool hosts_loss(int host, int percent);

/* Folders: of temporary files, of logs, and one of 256 KiB. "" before hosts_open(). */
const char *hosts_folder(const char *name);
/* Empty a folder; how many files were in it. */
int hosts_sweep(const char *folder);
