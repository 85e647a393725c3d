// Names of files without hashes: the kernel's `install` names them, and JupyterLab's server asks browsers to look
// whether a file has changed.
module.exports = {
  output: { filename: '[name].js', chunkFilename: '[name].js', clean: true },
  optimization: { chunkIds: 'named', moduleIds: 'named', splitChunks: false }
};
