// Image files to pixels, as the browser decodes them: upright, without a conversion of their colors.
const MAX_IMAGE_PIXELS = 2 ** 26;

async function readPixels(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { colorSpaceConversion: "none", premultiplyAlpha: "none", imageOrientation: "from-image" });
  } catch {
    throw new Error("this browser can't decode it");
  }
  const { width, height } = bitmap;
  if (width * height > MAX_IMAGE_PIXELS) throw new Error("it has too many pixels");
  const canvas = make("canvas", { width, height }), context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const exact = isTranslucent(data) ? texturePixels(bitmap) : null;
  bitmap.close();
  return { data: exact || data, width, height };
}

function isTranslucent(data) {
  for (let at = 3; at < data.length; at += 4) if (data[at] > 0 && data[at] < 255) return true;
  return false;
}

// A canvas multiplies colors by their opacity, and rounds them; a texture keeps them. Null where there is no WebGL2, or no room.
function texturePixels(bitmap) {
  const gl = make("canvas", { width: 1, height: 1 }).getContext("webgl2"), { width, height } = bitmap;
  if (!gl || Math.max(width, height) > gl.getParameter(gl.MAX_TEXTURE_SIZE)) return null;
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, bitmap);
  gl.bindFramebuffer(gl.FRAMEBUFFER, gl.createFramebuffer());
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, gl.getParameter(gl.TEXTURE_BINDING_2D), 0);
  const data = new Uint8Array(4 * width * height);
  gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, data);
  const isRead = gl.getError() === gl.NO_ERROR;
  gl.getExtension("WEBGL_lose_context")?.loseContext(); // a page may hold a few of them only
  return isRead ? data : null;
}
