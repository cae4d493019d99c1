/** Reads the pages of a PDF with poppler's tools. */
import { execFileSync } from "node:child_process";

export interface Word {
  text: string;
  /** Place in points, from the left and from the top. */
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface PrintedPage {
  width: number;
  height: number;
  words: Word[];
  /** All words, with one blank between them. */
  text: string;
}

export function readPdf(pdf: Buffer): PrintedPage[] {
  const xml = execFileSync("pdftotext", ["-bbox", "-", "-"], { input: pdf, encoding: "utf8", maxBuffer: 2 ** 28 });
  return [...xml.matchAll(/<page width="([\d.]+)" height="([\d.]+)">(.*?)<\/page>/gs)].map(
    ([, width, height, content = ""]) => {
      const found = content.matchAll(/<word xMin="(.*?)" yMin="(.*?)" xMax="(.*?)" yMax="(.*?)">(.*?)<\/word>/g);
      const words = [...found].map(([, left, top, right, bottom, text = ""]) => {
        return {
          text: plain(text),
          ...{ left: Number(left), right: Number(right) },
          top: Number(top),
          bottom: Number(bottom),
        };
      });
      return { width: Number(width), height: Number(height), words, text: words.map(({ text }) => text).join(" ") };
    },
  );
}

/** Shades of grey of each page, 0 black to 255 white, a few dots for each letter. */
export function shades(pdf: Buffer): Uint8Array[] {
  const images = execFileSync("pdftoppm", ["-gray", "-r", "72", "-"], { input: pdf, maxBuffer: 2 ** 28 });
  const pages: Uint8Array[] = [];
  for (let at = 0; at < images.length; ) {
    const [header = "", width, height] = /^P5\s(\d+)\s(\d+)\s255\s/.exec(images.toString("latin1", at, at + 40)) ?? [];
    const size = Number(width) * Number(height);
    pages.push(new Uint8Array(images.subarray(at + header.length, at + header.length + size)));
    at += header.length + size;
  }
  return pages;
}

function plain(text: string): string {
  const characters: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };
  return text.replace(/&([^;]+);/g, (all, name: string) => characters[name] ?? all);
}
