/**
 * Text in lines of at most `width` characters, broken at blanks and line feeds; a word longer than a line stays whole. Later lines are
 * indented by `hanging`.
 */
export function wrap(text: string, width: number, hanging = 0): string[] {
  const lines: string[] = [];
  for (const paragraph of text.split("\n")) {
    let line = "";
    for (const word of paragraph.trim().split(/\s+/)) {
      if (line.trim() !== "" && line.length + 1 + word.length > width) {
        lines.push(line);
        line = "";
      }
      if (line === "") line = lines.length > 0 ? " ".repeat(hanging) + word : word;
      else line += ` ${word}`;
    }
    lines.push(line);
  }
  return lines;
}
