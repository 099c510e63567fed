// sidebar makes of docs/README.md, which has a table of questions and pages below each heading, the site's own: each row
// is an entry, which leads to the first page that it names. TestIndex of test/repo holds that no page is forgotten there.
export function sidebar(contents) {
  const groups = []
  for (const line of contents.split('\n')) {
    const [, heading] = line.match(/^## (.+)/) ?? []
    const [, text, page] = line.match(/^\| ([^|]+) \| \[[^\]]+\]\(([^)/#]+)\.md\)/) ?? []
    if (heading) groups.push({text: heading, items: []})
    if (page) groups.at(-1).items.push({text, link: `/${page}`})
  }
  return groups
}
