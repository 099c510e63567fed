package launcher

const usr1, usr2 = 10, 12
