/** Figures as PNG. The font comes with the package, so that they are the same on a machine without any. */
import { createRequire } from "node:module";

const kFaces = ["400Regular/Arimo_400Regular.ttf", "600SemiBold/Arimo_600SemiBold.ttf"];

/** `scale`: pixels for each of the SVG's. */
export async function renderPng(svg: string, scale = 1.5): Promise<Uint8Array> {
  const { createCanvas, GlobalFonts, loadImage } = await import("@napi-rs/canvas");
  if (!GlobalFonts.has("Arimo")) {
    const { resolve } = createRequire(import.meta.url);
    for (const face of kFaces) GlobalFonts.registerFromPath(resolve(`@expo-google-fonts/arimo/${face}`), "Arimo");
  }
  const image = await loadImage(Buffer.from(svg));
  const canvas = createCanvas(Math.ceil(image.width * scale), Math.ceil(image.height * scale));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toBuffer("image/png");
}
